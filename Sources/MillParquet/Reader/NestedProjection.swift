/// What a nested column of a file is by a newer schema: members of groups go by identifiers, whatever they were called when the file was
/// written. A group whose members have no identifiers in the file is as the file has it.
package indirect enum NestedProjection: Hashable, Sendable {
    case asStored
    case members([Member])
    case elements(NestedProjection)
    /// Of a map; keys are always as stored.
    case values(NestedProjection)

    package struct Member: Hashable, Sendable {
        let fieldID: Int32
        let name: String
        let projection: NestedProjection
        /// JSON: what rows have whose file lacks the member.
        let missing: String

        package init(_ fieldID: Int32, _ name: String, _ projection: NestedProjection, missing: String = "null") {
            (self.fieldID, self.name, self.projection, self.missing) = (fieldID, name, projection, missing)
        }
    }

    var ofElements: NestedProjection { if case .elements(let inner) = self { inner } else { .asStored } }
    var ofValues: NestedProjection { if case .values(let inner) = self { inner } else { .asStored } }

    /// The members that a group of these nodes is projected to; nil when it stays as it is.
    func members(of nodes: [SchemaNode]) -> [Member]? {
        guard case .members(let members) = self, nodes.contains(where: { $0.fieldID != nil }) else { return nil }
        return members
    }
}
