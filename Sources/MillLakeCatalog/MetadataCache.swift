import MillIceberg
import Synchronization

/// Metadata files that were read or written lately. A file never changes, so what is here is right for ever; what was first put in goes first.
///
/// Threading: any thread.
final class MetadataCache: Sendable {
    private struct State {
        var tables: [String: (table: TableMetadata, byteCount: Int)] = [:]
        var order: [String] = []
        var byteCount = 0
    }

    /// Of the files' bytes: what they are in memory is some times that.
    private static let bytesMax = 32 << 20
    private let state = Mutex(State())

    subscript(location: String) -> TableMetadata? { state.withLock { $0.tables[location]?.table } }

    func put(_ table: TableMetadata, _ location: String, byteCount: Int) {
        guard byteCount <= Self.bytesMax / 4 else { return }
        state.withLock { state in
            guard state.tables.updateValue((table, byteCount), forKey: location) == nil else { return }
            state.order.append(location)
            state.byteCount += byteCount
            while state.byteCount > Self.bytesMax, !state.order.isEmpty {
                state.byteCount -= state.tables.removeValue(forKey: state.order.removeFirst())?.byteCount ?? 0
            }
        }
    }
}
