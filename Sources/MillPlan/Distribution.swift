/// Which worker has a row of a stream.
package enum Distribution: Hashable, Sendable, Codable {
    /// Anywhere.
    case any
    /// By the hash of these columns' values, in this order.
    case hash([Int])
    /// All on worker 0.
    case single
}

extension Distribution {
    /// Whether rows that are equal in `keys` are on one worker.
    package func fits(_ keys: [Int]) -> Bool {
        switch self {
        case .any: false
        case .single: true
        case .hash: places(in: keys) != nil
        }
    }

    /// Where the columns that are hashed stand among `keys`; nil unless they are all there.
    package func places(in keys: [Int]) -> [Int]? {
        guard case .hash(let columns) = self, !columns.isEmpty else { return nil }
        var places: [Int] = []
        for column in columns {
            guard let place = keys.firstIndex(of: column) else { return nil }
            places.append(place)
        }
        return places
    }

    /// The same distribution in other column numbers; `any` when one of its columns is gone.
    package func remapped(_ map: (Int) -> Int?) -> Distribution {
        guard case .hash(let columns) = self else { return self }
        let mapped = columns.compactMap(map)
        return mapped.count == columns.count ? .hash(mapped) : .any
    }

    /// The same distribution of rows that have these columns only.
    package func among(_ columns: [Int]) -> Distribution { remapped { columns.firstIndex(of: $0) } }
}
