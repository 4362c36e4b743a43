import ArgumentParser

/// `host:port`, `:port`, `port` or `off`, as the listeners' options take it.
struct ListenAddress: ExpressibleByArgument {
    let host: String
    let port: Int
    let isOff: Bool

    init?(argument: String) {
        if argument == "off" {
            (host, port, isOff) = ("localhost", 0, true)
            return
        }
        let separator = argument.lastIndex(of: ":")
        let portText = separator.map { argument[argument.index(after: $0)...] } ?? argument[...]
        guard let number = Int(portText), (0...65535).contains(number) else { return nil }
        var name = separator.map { String(argument[..<$0]) } ?? "localhost"
        if name.hasPrefix("["), name.hasSuffix("]") { name = String(name.dropFirst().dropLast()) }
        (host, port, isOff) = (name.isEmpty ? "localhost" : name, number, false)
    }

    /// Only this machine reaches it.
    var isLoopback: Bool {
        host == "localhost" || host == "::1" || (host.hasPrefix("127.") && host.allSatisfy { $0.isNumber || $0 == "." })
    }

    var defaultValueDescription: String { isOff ? "off" : "\(host):\(port)" }
}
