extension TableMetadata {
    /// The table after updates, in their order.
    package func applying(_ updates: [TableUpdate]) throws(IcebergError) -> TableMetadata {
        var result = self
        for update in updates { try result.apply(update) }
        return result
    }

    private mutating func apply(_ update: TableUpdate) throws(IcebergError) {
        switch update {
        case .addSnapshot(let added):
            guard snapshot(id: added.id) == nil else { throw .badRequest("snapshot \(added.id) is there already") }
            guard formatVersion == 1 || added.sequenceNumber > lastSequenceNumber else {
                throw .badRequest("sequence number \(added.sequenceNumber) is not above \(lastSequenceNumber)")
            }
            snapshots.append(added)
            lastSequenceNumber = added.sequenceNumber
            lastUpdatedMillis = added.timestampMillis
            nextRowID += added.addedRows ?? 0
        case .setSnapshotRef(let name, let reference):
            guard let target = snapshot(id: reference.snapshotID) else { throw .badRequest("there is no snapshot \(reference.snapshotID)") }
            references[name] = reference
            if name == "main" {
                snapshotLog.append(.init(timestampMillis: max(target.timestampMillis, snapshotLog.last?.timestampMillis ?? 0), snapshotID: target.id))
            }
        case .removeSnapshots(let ids):
            let gone = Set(ids)
            snapshots.removeAll { gone.contains($0.id) }
            references = references.filter { !gone.contains($0.value.snapshotID) }
            // The log before a snapshot that is gone would have a hole in it.
            if let last = snapshotLog.lastIndex(where: { gone.contains($0.snapshotID) }) { snapshotLog.removeSubrange(...last) }
        }
    }
}
