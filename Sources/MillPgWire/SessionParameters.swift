/// The settings that the server reports with ParameterStatus, at the start and whenever they change.
///
/// `server_version` is a PostgreSQL version that clients derive catalog queries and features from. 15.0 is told because
/// psql 15 then sends the same queries that it sends its own server (no warning about a newer server), newer psql
/// versions fall back to the same set, and drivers enable nothing that the engine lacks.
package enum SessionParameters {
    package static let serverVersion = "15.0 (Millrace)"

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
