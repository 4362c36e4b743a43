/// The few decisions in which the SQL spoken by different systems differs below the grammar.
///
/// One parser serves all of them: a dialect is a value, and there is one file for each in this folder.
package struct Dialect: Sendable, Hashable {
    package enum Folding: Sendable, Hashable {
        case lower, upper, none
    }

    /// As `SET sql_dialect` names it.
    package var name: String
    /// What an unquoted identifier becomes. ASCII letters only, as in PostgreSQL.
    package var folding: Folding
    /// `` `name` `` is a quoted identifier; else the backtick is an operator character.
    package var quotesWithBackticks: Bool
}
