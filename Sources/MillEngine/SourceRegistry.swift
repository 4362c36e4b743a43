package import MillBase
package import MillCatalog
package import MillColumnar
package import MillConnectorKit
import MillDataflow
import Synchronization

/// Makes connectors and decoders from the options of CREATE SOURCE. Implemented where the connectors are known.
package protocol SourceAssembly: Sendable {
    /// - Throws: 22023 for options, 0A000 for a connector or format that is not there.
    func connector(name: String, options: [CatalogOption]) throws(SQLError) -> any SourceConnector
    /// A factory of decoders for a relation's columns by number.
    func decoderFactory(columns: [Field], options: [CatalogOption]) throws(SQLError) -> @Sendable ([Int]) throws(SQLError) -> any Decoder
}

/// The sources as workers need them: shared between the engine and the worker threads.
final class SourceRegistry: Sendable {
    private struct Entry {
        var definition: SourceDefinition
        /// Origin's splits and those found later.
        var splits: Set<SourceSplit>
    }

    private let entries = Mutex<[ObjectID: Entry]>([:])

    func add(_ definition: SourceDefinition) {
        entries.withLock { $0[definition.id] = Entry(definition: definition, splits: Set(definition.origin.keys)) }
    }

    func remove(_ id: ObjectID) { entries.withLock { $0[id] = nil } }

    /// Notes splits; returns those that are new.
    func add(_ splits: [SourceSplit], to id: ObjectID) -> [SourceSplit] {
        entries.withLock { entries in
            guard entries[id] != nil else { return [] }
            return splits.filter { entries[id]!.splits.insert($0).inserted }
        }
    }

    var all: [SourceDefinition] { entries.withLock { $0.values.map(\.definition).sorted { $0.id < $1.id } } }

    func definition(_ id: ObjectID) -> SourceDefinition? { entries.withLock { $0[id]?.definition } }

    func splits(_ id: ObjectID) -> [SourceSplit] { entries.withLock { $0[id]?.splits.sorted() ?? [] } }

    /// Which worker reads a split: a fixed spread, so that partitions of one topic go round.
    static func owner(of split: SourceSplit, workerCount: Int) -> WorkerIndex { WorkerIndex(Int(split.partition) % workerCount) }

    /// On a worker's thread: the source's input with this worker's splits.
    func makeInput(
        _ id: ObjectID, worker: WorkerIndex, workerCount: Int, onData: @escaping @Sendable () -> Void,
        onRejects: @escaping SourceInput.RejectHandler
    ) throws(SQLError) -> SourceInput {
        guard let entry = entries.withLock({ $0[id] }) else { throw SQLError(.undefinedObject, "source \(id) does not exist") }
        let input = SourceInput(definition: entry.definition, onData: onData, onRejects: onRejects)
        for split in entry.splits.sorted() where Self.owner(of: split, workerCount: workerCount) == worker { try input.add(split) }
        return input
    }
}
