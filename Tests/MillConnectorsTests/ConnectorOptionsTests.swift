import MillBase
import MillConnectorKit
import MillIO
import Testing

@testable import MillConnectors

@Suite struct ConnectorOptionsTests {
    private func make(_ options: [String: String]) throws(SQLError) -> SourceConnectors.Made {
        try SourceConnectors.make(options, environment: .system, embedded: nil)
    }

    private let kafka = ["connector": "kafka", "topic": "t", "properties.bootstrap.server": "127.0.0.1:1"]

    private func message(_ more: [String: String], without name: String? = nil) -> SQLError? {
        var options = kafka.merging(more) { $1 }
        if let name { options[name] = nil }
        do throws(SQLError) {
            _ = try make(options)
            return nil
        } catch { return error }
    }

    @Test func anUnknownOptionIsNamedAndTheKnownOnesListed() {
        let error = message(["topik": "x"])
        #expect(error?.sqlState == .invalidParameterValue)
        #expect(error?.message == "connector \"kafka\" has no option \"topik\"")
        #expect(error?.hint?.contains("scan.startup.mode") == true)
        #expect(message(["scan.startup.mod": "x"])?.hint?.hasPrefix("Perhaps you meant \"scan.startup.mode\".") == true)
    }

    @Test func aMissingOptionComesWithAHint() {
        #expect(message([:], without: "topic")?.message == "option \"topic\" of connector \"kafka\" is missing")
        #expect(message([:], without: "properties.bootstrap.server")?.hint == "Set it to the brokers, such as 'localhost:9092'.")
        #expect(message(["scan.startup.mode": "timestamp"])?.message.contains("scan.startup.timestamp.millis") == true)
        #expect(throws: SQLError.self) { try make(["topic": "t"]) }
        #expect(throws: SQLError.self) { try make(["connector": "pulsar"]) }
        #expect(throws: SQLError.self) { try make(["connector": "file"]) }
    }

    @Test func bothSpellingsOfTheBrokersAreUnderstoodButNotTogether() {
        #expect(message(["properties.bootstrap.servers": "127.0.0.1:1"], without: "properties.bootstrap.server") == nil)
        #expect(message(["properties.bootstrap.servers": "127.0.0.1:1"])?.message.contains("mean the same") == true)
    }

    @Test func propertiesGoToTheClientAndWrongOnesAreNamed() throws {
        #expect(message(["properties.fetch.min.bytes": "1", "properties.fetch.max.wait.ms": "50"]) == nil)
        #expect(message(["properties.fetch.min.bites": "1"])?.message == "connector \"kafka\" has no option \"properties.fetch.min.bites\"")
        #expect(message(["properties.fetch.min.bytes": "many"])?.sqlState == .invalidParameterValue)
        #expect(message(["properties.sasl.jaas.config": "x"])?.hint?.contains("sasl.username") == true)
        let made = try make(kafka.merging(["properties.key.deserializer": "x", "format": "json", "json.ignore-parse-errors": "true"]) { $1 })
        #expect(made.notices == ["option \"properties.key.deserializer\" has no effect"])
        #expect(made.format == .plainJSON)
    }

    @Test func startupModesOfRisingWaveAndFlinkAreUnderstood() {
        for mode in ["earliest", "latest", "earliest-offset", "latest-offset", "LATEST"] { #expect(message(["scan.startup.mode": mode]) == nil) }
        #expect(message(["scan.startup.mode": "newest"])?.hint == "Expected earliest, latest or timestamp.")
        #expect(message(["scan.startup.mode": "timestamp", "scan.startup.timestamp-millis": "12"]) == nil)
        #expect(message(["scan.startup.timestamp.millis": "soon"])?.sqlState == .invalidParameterValue)
    }

    @Test func formatsOtherThanPlainOnesAreRefused() throws {
        var options = ConnectorOptions(connector: "file", ["delimiter": "tab"])
        #expect(try SourceFormat(format: "plain", encode: "Json", taking: &options) == .plainJSON)
        #expect(try SourceFormat(format: "plain", encode: "CSV", taking: &options) == .csv(CSVDialect(delimiter: 9)))
        #expect(throws: SQLError.self) { try SourceFormat(format: "debezium", encode: "json", taking: &options) }
        #expect(throws: SQLError.self) { try SourceFormat(format: "plain", encode: "avro", taking: &options) }
    }
}
