package import MillBase

/// What the binder needs of a catalog: names to objects. One value is one consistent state.
package protocol CatalogReader: Sendable {
    /// The object that a possibly qualified name means, along the search path `public`, `pg_catalog`; nil when there is none.
    /// `schema` nil means unqualified. Names are already folded.
    func object(schema: String?, name: String) -> CatalogObject?
    func object(_ id: ObjectID) -> CatalogObject?
    func schemaExists(_ name: String) -> Bool
}
