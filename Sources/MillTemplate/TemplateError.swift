package import MillBase

/// Why a template or its variables file was refused, with the file's name and the line.
package struct TemplateError: SQLErrorConvertible, Hashable, CustomStringConvertible {
    /// What is wrong; each kind has one SQLSTATE.
    package enum Reason: Sendable, Hashable {
        /// The template's text is not a template.
        case syntax(String)
        /// A statement or filter of Jinja's that Millrace does not have.
        case unsupported(String)
        /// A variable, or an attribute of one, that nobody defined.
        case undefined(String)
        /// The operation does not take this value.
        case invalidValue(String)
        /// A bound on nesting, size or steps was reached.
        case limit(String)
    }

    package var reason: Reason
    /// The template or variables file.
    package var name: String
    /// One-based.
    package var line: Int

    package init(_ reason: Reason, name: String, line: Int) {
        self.reason = reason
        self.name = name
        self.line = line
    }

    package var description: String { "\(sqlError.message)" + (sqlError.hint.map { " (\($0))" } ?? "") }

    package var sqlError: SQLError {
        let place = "\(name), line \(line): "
        switch reason {
        case .syntax(let text): return SQLError(.syntaxError, place + text)
        case .unsupported(let text): return SQLError(.featureNotSupported, place + text)
        case .undefined(let variable):
            return SQLError(
                .undefinedParameter, place + "variable \"\(variable)\" is undefined",
                hint: "Define it in the variables file, or write {{ \(variable) | default(\"...\") }}.")
        case .invalidValue(let text): return SQLError(.invalidParameterValue, place + text)
        case .limit(let text): return SQLError(.programLimitExceeded, place + text)
        }
    }
}
