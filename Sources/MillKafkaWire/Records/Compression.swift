/// How a batch's records are packed: the low three bits of its attributes.
package enum Compression: Int, Sendable, Hashable, CaseIterable, CustomStringConvertible {
    case none = 0
    case gzip = 1
    case snappy = 2
    case lz4 = 3
    case zstd = 4

    package var description: String {
        switch self {
        case .none: "none"
        case .gzip: "gzip"
        case .snappy: "snappy"
        case .lz4: "lz4"
        case .zstd: "zstd"
        }
    }
}
