import ArgumentParser
import MillKafkaServer

/// `ADDRESS[,advertised=HOST[:PORT]]`: where to listen for Kafka clients, and what those that come this way are told to connect to.
struct KafkaListenAddress: ExpressibleByArgument {
    let address: ListenAddress
    let advertisedHost: String?
    let advertisedPort: Int?

    init?(argument: String) {
        let parts = argument.split(separator: ",", omittingEmptySubsequences: false)
        guard parts.count <= 2, let address = ListenAddress(argument: String(parts[0])) else { return nil }
        self.address = address
        guard parts.count == 2 else {
            (advertisedHost, advertisedPort) = (nil, nil)
            return
        }
        let prefix = "advertised="
        guard parts[1].hasPrefix(prefix), !address.isOff else { return nil }
        let advertised = parts[1].dropFirst(prefix.count)
        guard let separator = advertised.lastIndex(of: ":"), !advertised.hasSuffix("]") else {
            guard !advertised.isEmpty else { return nil }
            (advertisedHost, advertisedPort) = (Self.withoutBrackets(advertised), nil)
            return
        }
        guard let port = Int(advertised[advertised.index(after: separator)...]), (1...65535).contains(port),
            separator > advertised.startIndex
        else { return nil }
        (advertisedHost, advertisedPort) = (Self.withoutBrackets(advertised[..<separator]), port)
    }

    private static func withoutBrackets(_ name: Substring) -> String {
        name.hasPrefix("[") && name.hasSuffix("]") ? String(name.dropFirst().dropLast()) : String(name)
    }

    var listener: KafkaListener {
        KafkaListener(host: address.host, port: address.port, advertisedHost: advertisedHost, advertisedPort: advertisedPort)
    }

    var defaultValueDescription: String { address.defaultValueDescription }
}
