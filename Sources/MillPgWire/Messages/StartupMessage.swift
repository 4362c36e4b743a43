/// Who connects, to what, and with which settings.
package struct StartupMessage: Hashable, Sendable {
    /// The minor version asked for; above 0 the server negotiates down.
    package var minorVersion: UInt16
    package var user: String
    package var database: String
    /// Everything else in the order sent, the switches of `options` (`-c name=value`, `--name=value`) included.
    package var settings: [Setting]
    /// Names that begin with `_pq_.`, none of which is known here.
    package var protocolExtensions: [String]

    package struct Setting: Hashable, Sendable {
        package var name: String
        package var value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    package init(
        minorVersion: UInt16 = 0, user: String = "root", database: String? = nil, settings: [Setting] = [],
        protocolExtensions: [String] = []
    ) {
        self.minorVersion = minorVersion
        self.user = user
        self.database = database ?? user
        self.settings = settings
        self.protocolExtensions = protocolExtensions
    }

    init(minorVersion: UInt16, decoding reader: inout MessageReader) throws(PgWireError) {
        self.init(minorVersion: minorVersion)
        var user = ""
        var database = ""
        while true {
            let name = try reader.name()
            if name.isEmpty { break }
            let value = try reader.name()
            switch name {
            case "user": user = value
            case "database": database = value
            case "options": settings += Self.switches(in: value)
            case let name where name.hasPrefix("_pq_."): protocolExtensions.append(name)
            default: settings.append(Setting(name, value))
            }
        }
        try reader.finish()
        self.user = user.isEmpty ? "root" : user
        self.database = database.isEmpty ? self.user : database
    }

    /// The settings of an `options` string: words split at white space, a backslash takes the next character as it is.
    static func switches(in options: String) -> [Setting] {
        var words: [String] = []
        var word: String?
        var escaped = false
        for character in options {
            if escaped {
                word = (word ?? "") + String(character)
                escaped = false
            } else if character == "\\" {
                escaped = true
            } else if character.isWhitespace {
                if let done = word { words.append(done) }
                word = nil
            } else {
                word = (word ?? "") + String(character)
            }
        }
        if let done = word { words.append(done) }

        var settings: [Setting] = []
        var index = 0
        while index < words.count {
            var assignment = words[index]
            index += 1
            if assignment == "-c" {
                guard index < words.count else { break }
                assignment = words[index]
                index += 1
            } else if assignment.hasPrefix("--") || assignment.hasPrefix("-c") {
                assignment.removeFirst(2)
            } else {
                continue
            }
            guard let equals = assignment.firstIndex(of: "=") else { continue }
            let name = String(assignment[..<equals].map { $0 == "-" ? "_" : $0 })
            settings.append(Setting(name, String(assignment[assignment.index(after: equals)...])))
        }
        return settings
    }
}
