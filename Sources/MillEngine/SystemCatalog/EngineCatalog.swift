import MillBase
import MillCatalog
import MillColumnar

/// The catalog with the relations that come with an object: `<source>_rejects`, `<view>_errors`, `<sink>_errors` and `<view>_late`.
///
/// They are not created and cannot be dropped; their identifiers are the object's with a high bit set.
struct EngineCatalog: CatalogReader {
    let catalog: Catalog

    static let rejectsBit: UInt32 = 1 << 30
    static let errorsBit: UInt32 = 1 << 29
    static let lateBit: UInt32 = 1 << 28

    func object(schema: String?, name: String) -> CatalogObject? {
        if let object = catalog.object(schema: schema, name: name) { return object }
        if let base = base(of: name, "_rejects", schema), base.kind == .source { return Self.rejects(of: base) }
        if let base = base(of: name, "_errors", schema), base.kind == .materializedView || base.kind == .sink { return Self.errors(of: base) }
        if let base = base(of: name, "_late", schema), base.kind == .materializedView { return Self.late(of: base) }
        return nil
    }

    private func base(of name: String, _ suffix: String, _ schema: String?) -> CatalogObject? {
        name.hasSuffix(suffix) ? catalog.object(schema: schema, name: String(name.dropLast(suffix.count))) : nil
    }

    func object(_ id: ObjectID) -> CatalogObject? {
        if let object = catalog.object(id) { return object }
        if id.number & Self.rejectsBit != 0 { return catalog.object(ObjectID(id.number & ~Self.rejectsBit)).map(Self.rejects) }
        if id.number & Self.errorsBit != 0 { return catalog.object(ObjectID(id.number & ~Self.errorsBit)).map(Self.errors) }
        if id.number & Self.lateBit != 0 { return catalog.object(ObjectID(id.number & ~Self.lateBit)).map(Self.late) }
        return nil
    }

    /// Every object, and after each what comes with it.
    var objects: [CatalogObject] {
        catalog.objects.flatMap { object in
            switch object.kind {
            case .source: [object, Self.rejects(of: object)]
            case .materializedView: [object, Self.errors(of: object), Self.late(of: object)]
            case .sink: [object, Self.errors(of: object)]
            case .table, .view, .system: [object]
            }
        }
    }

    func schemaExists(_ name: String) -> Bool { catalog.schemaExists(name) }

    private static func rejects(of source: CatalogObject) -> CatalogObject {
        CatalogObject(
            id: ObjectID(source.id.number | rejectsBit), schemaName: source.schemaName, name: source.name + "_rejects", kind: .system,
            columns: [
                CatalogColumn("topic", .varchar), CatalogColumn("partition", .int32), CatalogColumn("offset", .int64),
                CatalogColumn("column_name", .varchar), CatalogColumn("raw", .bytea), CatalogColumn("reason", .varchar),
                CatalogColumn("rejected_at", .timestamptz),
            ])
    }

    private static func errors(of job: CatalogObject) -> CatalogObject {
        let ofSink = [
            CatalogColumn("epoch", .int64), CatalogColumn("column_name", .varchar), CatalogColumn("row", .jsonb), CatalogColumn("reason", .varchar),
            CatalogColumn("refused_at", .timestamptz),
        ]
        return CatalogObject(
            id: ObjectID(job.id.number | errorsBit), schemaName: job.schemaName, name: job.name + "_errors", kind: .system,
            columns: job.kind == .sink ? ofSink : [
                CatalogColumn("operator", .varchar), CatalogColumn("sqlstate", .varchar), CatalogColumn("message", .varchar),
                CatalogColumn("row", .varchar), CatalogColumn("count", .int64),
            ])
    }

    private static func late(of view: CatalogObject) -> CatalogObject {
        CatalogObject(
            id: ObjectID(view.id.number | lateBit), schemaName: view.schemaName, name: view.name + "_late", kind: .system,
            columns: [
                CatalogColumn("operator", .varchar), CatalogColumn("row", .jsonb), CatalogColumn("count", .int64),
                CatalogColumn("watermark", .timestamptz), CatalogColumn("late_at", .timestamptz),
            ])
    }
}
