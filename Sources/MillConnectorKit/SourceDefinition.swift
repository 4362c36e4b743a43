package import MillBase

/// A source as the workers need it: where records come from, how bytes become columns, and where the source begins.
package struct SourceDefinition: Sendable {
    package var id: ObjectID
    package var name: String
    package var connector: any SourceConnector
    /// A decoder that gives these columns of the relation, in this order.
    package var makeDecoder: @Sendable ([Int]) throws(SQLError) -> any Decoder
    /// Where the source begins, fixed when it was created.
    package var origin: [SourceSplit: SplitOffset]

    package init(
        id: ObjectID, name: String, connector: any SourceConnector, makeDecoder: @escaping @Sendable ([Int]) throws(SQLError) -> any Decoder,
        origin: [SourceSplit: SplitOffset]
    ) {
        self.id = id
        self.name = name
        self.connector = connector
        self.makeDecoder = makeDecoder
        self.origin = origin
    }
}
