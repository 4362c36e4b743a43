/// One address to listen on, and what clients are told to connect to.
package struct KafkaListener: Sendable, Hashable {
    /// `localhost` means both loopback addresses.
    package var host: String
    /// 0 lets the system choose.
    package var port: Int
    /// The name in Metadata; nil is `host`, or for a wildcard address the one that the client reached.
    package var advertisedHost: String?
    /// nil is the bound port.
    package var advertisedPort: Int?

    package init(host: String = "localhost", port: Int = 9092, advertisedHost: String? = nil, advertisedPort: Int? = nil) {
        self.host = host
        self.port = port
        self.advertisedHost = advertisedHost
        self.advertisedPort = advertisedPort
    }

    /// The name and port in `HOST:PORT`, an IPv6 address in brackets; nil for what no client could connect to.
    package static func advertised(_ text: some StringProtocol) -> (host: String, port: Int)? {
        guard let separator = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: separator)...]), port > 0 else { return nil }
        let name = text[..<separator]
        if name.hasPrefix("["), name.hasSuffix("]") {
            let address = name.dropFirst().dropLast()
            return address.contains(":") && address.allSatisfy { $0.isHexDigit || ":.%".contains($0) } ? (String(address), Int(port)) : nil
        }
        let isName = !name.isEmpty && name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-._".contains($0)) }
        return isName ? (String(name), Int(port)) : nil
    }
}

package struct KafkaServerOptions: Sendable {
    package var listeners = [KafkaListener()]
    /// Partitions of a topic that is made because somebody named it, or without a count.
    package var defaultPartitions = 1
    package var autoCreatesTopics = true
    /// A longer request closes its connection; Kafka's `socket.request.max.bytes`.
    package var requestBytesMax = 100 << 20
    /// Memory of earlier requests that is kept for the next ones.
    package var keptRequestBytesMax = 32 << 20
    /// The most that one fetch returns; Kafka's `fetch.max.bytes`.
    package var fetchBytesMax = 55 << 20
    /// Requests of one connection that may wait for their answers before it is read on.
    package var requestsInFlightMax = 64
    /// Bytes of answers that a connection may owe before it is read on.
    package var responseBytesMax = 64 << 20
    /// How long the first generation of an empty group waits for more members, so that those that start together begin with one
    /// assignment; Kafka's `group.initial.rebalance.delay.ms` (3,000 there). kafka-python 3 needs some: a leader that has to assign
    /// before it has read the topic's metadata can stay without partitions for good.
    package var groupGatheringMillis: UInt64 = 300
    package var eventLoops = 2
    package var nodeID: Int32 = 1
    package var clusterID = "millrace"

    package init() {}
}
