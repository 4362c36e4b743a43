import ArgumentParser
import MillKafkaServer

/// `ADDRESS[,advertised=HOST:PORT]`: where to listen for Kafka clients, and what those that come this way are told to connect to.
struct KafkaListenAddress {
    let address: ListenAddress
    private(set) var advertised: (host: String, port: Int)?

    static let standard = KafkaListenAddress(address: ListenAddress(argument: "localhost:9092")!)

    private init(address: ListenAddress) { self.address = address }

    /// - Throws: `ValidationError`, which says what is expected.
    init(_ argument: String) throws {
        let parts = argument.split(separator: ",", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = ListenAddress(argument: String(parts[0])) else {
            throw ValidationError("\"\(parts[0])\" is no address to listen on: HOST:PORT or off is expected before any advertised=HOST:PORT")
        }
        self.init(address: address)
        guard parts.count == 2 else { return }
        let prefix = "advertised="
        guard parts[1].hasPrefix(prefix), !address.isOff else {
            throw ValidationError("\"\(parts[1])\" is not expected here: only advertised=HOST:PORT may follow an address")
        }
        guard let advertised = KafkaListener.advertised(parts[1].dropFirst(prefix.count)) else {
            throw ValidationError("clients cannot be told \"\(parts[1].dropFirst(prefix.count))\": advertised takes HOST:PORT, such as advertised=kafka:29092")
        }
        self.advertised = advertised
    }

    var listener: KafkaListener {
        KafkaListener(host: address.host, port: address.port, advertisedHost: advertised?.host, advertisedPort: advertised?.port)
    }

    /// The address as the help shows it.
    var text: String { address.defaultValueDescription }
}
