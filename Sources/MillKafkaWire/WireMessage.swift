/// What can be read from and written to the wire in each of its versions.
package protocol WireStruct: Sendable, Equatable {
    init(from reader: inout WireReader, version: Int16) throws(WireError)
    func write(to writer: inout WireWriter, version: Int16)
}

/// A request's body.
package protocol WireRequest: WireStruct {
    static var api: KafkaAPI { get }
    static var versions: ClosedRange<Int16> { get }
    /// The first version with compact lengths and tagged fields, which also chooses the headers' versions.
    static var flexibleSince: Int16 { get }
}

/// What precedes every request: which one it is, in which version, and the number its response carries.
///
/// Layout: api key int16, api version int16, correlation id int32, client id nullable string with a two-byte length, and
/// from header version 2 on tagged fields. A request whose key or version is unknown has an unknown header version; only
/// the first eight bytes are read of it.
package struct RequestHeader: Sendable, Equatable {
    package var apiKey: Int16
    package var apiVersion: Int16
    package var correlationID: Int32
    package var clientID: String?

    package init(apiKey: Int16, apiVersion: Int16, correlationID: Int32, clientID: String?) {
        self.apiKey = apiKey
        self.apiVersion = apiVersion
        self.correlationID = correlationID
        self.clientID = clientID
    }

    package init(from reader: inout WireReader) throws(WireError) {
        apiKey = try reader.int16()
        apiVersion = try reader.int16()
        correlationID = try reader.int32()
        guard let api = KafkaAPI(rawValue: apiKey), api.versions.contains(apiVersion) else { return }
        clientID = try reader.nullableString(flexible: false)
        if apiVersion >= api.flexibleSince { try reader.skipTaggedFields() }
    }

    package func write(to writer: inout WireWriter) {
        writer.int16(apiKey)
        writer.int16(apiVersion)
        writer.int32(correlationID)
        writer.nullableString(clientID, flexible: false)
        if let api = KafkaAPI(rawValue: apiKey), apiVersion >= api.flexibleSince { writer.noTaggedFields() }
    }
}

extension KafkaAPI {
    /// Whether the response's header ends in tagged fields. That of ApiVersions never does, so that a client can read it
    /// before it knows which versions the broker speaks.
    package func responseHeaderIsFlexible(version: Int16) -> Bool { self != .apiVersions && version >= flexibleSince }
}
