import MillBase
import MillConnectorKit
import MillDataflow

/// How many records views have not had yet.
///
/// A reader knows the end of its split. Of what nobody reads, because it is paused or has failed, the ends are asked for about once a
/// second: SHOW JOBS and health wait for no broker.
extension Engine {
    /// Records that a job has not had yet of the sources that it reads. nil when it reads none, does not run, or when that is not known: a
    /// source does not answer, or its positions do not tell.
    /// - Parameter places: where the job is, by source; nil for one that no worker runs.
    func lag(of sourceIDs: [ObjectID], _ places: [ObjectID: [SourceSplit: SplitPlace]]?) -> Int64? {
        guard !sourceIDs.isEmpty, let places else { return nil }
        var total: Int64 = 0
        for id in Set(sourceIDs) {
            // What a reader heard last may be long ago.
            guard let connector = sources.definition(id)?.connector, connector.status == nil else { return nil }
            for (split, place) in places[id] ?? [:] {
                guard let end = place.end ?? unreadEnds[id]?[split] else { return nil }
                guard let left = connector.recordCount(split, from: place.offset, to: end) else { return nil }
                total += left
            }
        }
        return total
    }

    /// Asks for the ends of those splits that some job reads and no reader tells of.
    func noteUnreadEnds(of definition: SourceDefinition, _ splits: [SourceSplit]) async {
        let record = conductor.published
        let told = record.highWatermarks[definition.id] ?? [:]
        let unread = record.offsets[definition.id] == nil ? [] : splits.filter { told[$0] == nil }
        var ends: [SourceSplit: SplitOffset]?
        if !unread.isEmpty {
            // Without an answer they are not known.
            ends = try? await offActor { () throws(SQLError) in try definition.connector.highWatermarks(unread) }
        }
        // It may have been dropped meanwhile.
        unreadEnds[definition.id] = sources.definition(definition.id) == nil ? nil : ends
    }
}
