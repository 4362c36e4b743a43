package import MillBase
package import MillCatalog
package import MillColumnar
package import MillConnectorKit
package import MillConnectors
import MillDataflow
import MillPlan
import Synchronization

/// Makes connectors and decoders from the options of CREATE SOURCE. Implemented where the connectors are known.
package protocol SourceAssembly: Sendable {
    /// - Parameter fields: the declared columns.
    /// - Parameter catalogs: of tables that the source may be one of.
    /// - Throws: 22023 for options, 0A000 for a connector or format that is not there.
    func source(
        name: String, options: [CatalogOption], fields: [Field], catalogs: @escaping IcebergSource.CatalogFinder
    ) throws(SQLError) -> AssembledSource
    /// - Throws: 22023 for options. Nothing is contacted yet.
    func sink(options: [String: String], of relation: SinkConnectors.Relation) throws(SQLError) -> any SinkConnector
    /// A catalog of tables elsewhere.
    /// - Throws: 22023 for options. Nothing is contacted yet.
    func catalog(options: [CatalogOption]) throws(SQLError) -> any AttachedCatalog
    /// A catalog that this process has, by the name of its warehouse; nil when there is none.
    func embeddedCatalog(_ name: String) throws(SQLError) -> (any AttachedCatalog)?
    /// Names of all of these.
    func embeddedCatalogs() throws(SQLError) -> [String]
}

extension SourceAssembly {
    package func sink(options: [String: String], of relation: SinkConnectors.Relation) throws(SQLError) -> any SinkConnector {
        throw SQLError(.featureNotSupported, "there are no connectors for sinks")
    }
    package func catalog(options: [CatalogOption]) throws(SQLError) -> any AttachedCatalog {
        throw SQLError(.featureNotSupported, "no catalogs can be attached")
    }
    package func embeddedCatalog(_ name: String) throws(SQLError) -> (any AttachedCatalog)? { nil }
    package func embeddedCatalogs() throws(SQLError) -> [String] { [] }
}

/// A connector, its decoders, and what the user is told about options that have no effect.
package struct AssembledSource: Sendable {
    package var connector: any SourceConnector
    /// A decoder of the relation's columns with these numbers.
    package var makeDecoder: @Sendable ([Int]) throws(SQLError) -> any Decoder
    package var notices: [String]
    /// How its records are written, `parquet` for one, for a source that does not say so; nil where that is not known.
    package var encode: String?

    package init(
        connector: any SourceConnector, makeDecoder: @escaping @Sendable ([Int]) throws(SQLError) -> any Decoder, notices: [String] = [],
        encode: String? = nil
    ) {
        self.connector = connector
        self.makeDecoder = makeDecoder
        self.notices = notices
        self.encode = encode
    }
}

/// The sources as workers need them: shared between the engine and the worker threads.
final class SourceRegistry: Sendable {
    private struct Entry {
        var definition: SourceDefinition
        var watermark: SourceWatermark?
        /// Origin's splits and those found later, numbered as they came.
        var splits: [SourceSplit: Int]
        /// Where a checkpoint has the jobs that read it.
        var resumed: [SourceSplit: SplitOffset]
        /// Up to where it is read while it is paused.
        var pausedAt: [SourceSplit: SplitOffset]?
        /// Held to hear of later splits at once.
        var subscription: (any Sendable)?
    }

    private let entries = Mutex<[ObjectID: Entry]>([:])

    /// - Parameters:
    ///   - resumed: where a checkpoint has the jobs that read it; a split that is not in it begins at its origin.
    ///   - published: the splits of which something was published: they need not be found again.
    ///   - pausedAt: up to where it is read, if it is paused.
    ///   - onSplitChange: called when the source may have got splits.
    func add(
        _ definition: SourceDefinition, watermark: SourceWatermark? = nil, resumed: [SourceSplit: SplitOffset] = [:],
        published: Set<SourceSplit> = [], pausedAt: [SourceSplit: SplitOffset]? = nil,
        onSplitChange: @escaping @Sendable () -> Void
    ) {
        let known = Set(definition.origin.keys).union(resumed.keys).union(published)
        definition.connector.expect(known.sorted())
        let splits = Dictionary(uniqueKeysWithValues: known.sorted().enumerated().map { ($1, $0) })
        let entry = Entry(
            definition: definition, watermark: watermark, splits: splits, resumed: resumed, pausedAt: pausedAt,
            subscription: definition.connector.onSplitChange(onSplitChange))
        entries.withLock { $0[definition.id] = entry }
    }

    func remove(_ id: ObjectID) { entries.withLock { $0[id] = nil } }

    /// Pauses a source at these places, or lets it go on.
    func pause(_ id: ObjectID, at ends: [SourceSplit: SplitOffset]?) { entries.withLock { $0[id]?.pausedAt = ends } }

    /// Up to where a paused source is read; nil for one that goes on.
    func pausedAt(_ id: ObjectID) -> [SourceSplit: SplitOffset]? { entries.withLock { $0[id]?.pausedAt } }

    /// Notes splits; returns those that are new.
    func add(_ splits: [SourceSplit], to id: ObjectID) -> [SourceSplit] {
        entries.withLock { entries in
            guard entries[id] != nil else { return [] }
            var fresh: [SourceSplit] = []
            for split in splits where entries[id]!.splits[split] == nil {
                entries[id]!.splits[split] = entries[id]!.splits.count
                fresh.append(split)
            }
            return fresh
        }
    }

    var all: [SourceDefinition] { entries.withLock { $0.values.map(\.definition).sorted { $0.id < $1.id } } }

    func definition(_ id: ObjectID) -> SourceDefinition? { entries.withLock { $0[id]?.definition } }

    /// How many splits its connector gives; nil for a source that does not run.
    func splitCount(of id: ObjectID) -> Int? {
        entries.withLock { entries in entries[id].map { $0.splits.keys.count { $0 != ReplayingConnector.split } } }
    }

    /// The splits that a worker reads: they go round in the order they came.
    func splits(of id: ObjectID, on worker: WorkerIndex, workerCount: Int) -> [SourceSplit] {
        entries.withLock { entries in
            (entries[id]?.splits ?? [:]).filter { $0.value % workerCount == worker.number }.map(\.key).sorted()
        }
    }

    /// On a worker's thread: the source's input with this worker's splits.
    func makeInput(
        _ id: ObjectID, worker: WorkerIndex, workerCount: Int, onData: @escaping @Sendable () -> Void,
        onRejects: @escaping SourceInput.RejectHandler
    ) throws(SQLError) -> SourceInput {
        guard let entry = entries.withLock({ $0[id] }) else { throw SQLError(.undefinedObject, "source \(id) does not exist") }
        let input = SourceInput(definition: entry.definition, watermark: entry.watermark, onData: onData, onRejects: onRejects)
        if let ends = entry.pausedAt { input.pause(at: ends) }
        for split in splits(of: id, on: worker, workerCount: workerCount) {
            if entry.resumed.isEmpty { try input.add(split) } else { input.addFound(split, at: entry.resumed[split]) }
        }
        return input
    }
}
