/// The settings that the server reports with ParameterStatus, at the start and whenever they change.
///
/// `server_version` is a PostgreSQL version that clients derive catalog queries and features from. 14 is told because it
/// asks least of the catalog: up to 13 psql's `\d name` unnests statistics keys in FROM, from 15 on it expands publication
/// columns with `generate_series`. psql 15 and later accept it without a warning, which they only give for a newer server,
/// and drivers enable nothing that the engine lacks.
package enum SessionParameters {
    package static let serverVersion = "14.0 (Millrace)"

    /// What is reported when the backend names nothing else, in PostgreSQL's order.
    package static func initial(for startup: StartupMessage, overriding overrides: [StartupMessage.Setting]) -> [StartupMessage.Setting] {
        var parameters: [StartupMessage.Setting] = [
            .init("application_name", ""),
            .init("client_encoding", "UTF8"),
            .init("DateStyle", "ISO, MDY"),
            .init("default_transaction_read_only", "off"),
            .init("in_hot_standby", "off"),
            .init("integer_datetimes", "on"),
            .init("IntervalStyle", "postgres"),
            .init("is_superuser", "on"),
            .init("server_encoding", "UTF8"),
            .init("server_version", serverVersion),
            .init("session_authorization", startup.user),
            .init("standard_conforming_strings", "on"),
            .init("TimeZone", "UTC"),
        ]
        if let name = startup.settings.last(where: { $0.name.lowercased() == "application_name" }) {
            parameters[0] = .init("application_name", name.value)
        }
        for override in overrides {
            if let index = parameters.firstIndex(where: { $0.name.lowercased() == override.name.lowercased() }) {
                parameters[index].value = override.value
            } else {
                parameters.append(override)
            }
        }
        return parameters
    }
}
