import MillBase
import MillColumnar
import MillExpr
import MillSQL

/// The names that expressions of one SELECT may use, and what they mean over the plan of its FROM clause.
///
/// Entries stand in the order of `*`. A column that USING or NATURAL merged has an entry of its own, without a relation;
/// the two columns it came from stay reachable by their qualified names only, as in PostgreSQL.
struct Scope {
    struct Entry {
        /// The alias or name of the FROM item; nil for a merged column.
        var relation: String?
        var name: String
        var expression: BoundExpression
        /// Not part of `*`: a source's position.
        var isHidden = false
        /// Merged into another entry: not part of `*`, and not found without its relation.
        var isMerged = false
    }

    /// A FROM item's name. `schema` is known for relations of the catalog without an alias.
    struct Relation {
        var name: String
        var schema: String?
    }

    var entries: [Entry] = []
    var relations: [Relation] = []

    /// The scope of one FROM item whose columns are the plan's.
    init(relation: Relation?, columns: [(name: String, type: SQLType, isHidden: Bool)]) {
        relations = relation.map { [$0] } ?? []
        entries = columns.enumerated().map { index, column in
            Entry(relation: relation?.name, name: column.name, expression: .column(index, column.type), isHidden: column.isHidden)
        }
    }

    /// No columns: SELECT without FROM.
    init() {}

    /// The same scope over a plan where its columns come `offset` later.
    func shifted(by offset: Int) -> Scope {
        var copy = self
        for index in copy.entries.indices { copy.entries[index].expression = copy.entries[index].expression.remapped { $0 + offset } }
        return copy
    }

    /// The entry that a column reference means; nil when there is none here.
    /// - Throws: 42702 when several do, 42P01 when the qualifier names no relation of a scope that has a column of that name.
    func find(_ name: ObjectName) throws(SQLError) -> Entry? {
        let column = name.last.name
        let found: [Entry]
        switch name.parts.count {
        case 1: found = entries.filter { $0.name == column && !$0.isMerged }
        case 2, 3, 4:
            let relation = name.parts[name.parts.count - 2].name
            guard hasRelation(name) else { return nil }
            found = entries.filter { $0.name == column && $0.relation == relation }
        default: return nil
        }
        guard found.count <= 1 else {
            throw SQLError(.ambiguousColumn, "column reference \"\(column)\" is ambiguous", at: name.span.source)
        }
        return found.first
    }

    /// Whether the qualifier of a column reference names a FROM item.
    func hasRelation(_ name: ObjectName) -> Bool {
        guard name.parts.count >= 2 else { return false }
        let relation = name.parts[name.parts.count - 2].name
        let schema = name.parts.count >= 3 ? name.parts[name.parts.count - 3].name : nil
        return relations.contains { $0.name == relation && (schema == nil || $0.schema == schema) }
    }

    /// What a name without a column may have been meant to be: the nearest by edit distance, like PostgreSQL at most half
    /// of the name away.
    func suggestion(for name: ObjectName) -> String? {
        let wanted = name.last.name
        let relation = name.parts.count >= 2 ? name.parts[name.parts.count - 2].name : nil
        var best: (distance: Int, text: String)?
        for entry in entries where !entry.isMerged && !entry.isHidden {
            if let relation, entry.relation != relation { continue }
            let distance = editDistance(wanted, entry.name, atMost: 3)
            guard distance <= 3, distance * 2 <= max(wanted.count, 1), distance < best?.distance ?? .max else { continue }
            best = (distance, (entry.relation.map { $0 + "." } ?? "") + entry.name)
        }
        return best.map { "Perhaps you meant to reference the column \"\($0.text)\"." }
    }
}
