import MillHTTPClient
import MillIceberg
import MillIO

/// Answers of a catalog to a test's requests.
enum FakeCatalog {
    static func answer(_ status: Int, _ json: JSONValue = [:], _ headers: HTTPHeaders = [:]) -> ScriptedTransport.Answer {
        .success(HTTPResponse(status: status, headers: headers, body: Array(json.text.utf8)))
    }

    static func refusal(_ status: Int, _ type: String) -> ScriptedTransport.Answer {
        answer(status, ["error": ["message": "said so", "type": .string(type), "code": JSONValue(status)]])
    }

    static func lost(_ errorNumber: Int32) -> ScriptedTransport.Answer {
        .failure(IOFailure("POST", path: "http://c", errorNumber: errorNumber, detail: "lost"))
    }

    static func metadata(_ location: String = "s3://bucket/t") -> TableMetadata {
        TableMetadata(
            tableUUID: "9c12d441-03fe-4693-9a96-a0705ddf69c1", location: location, schema: IcebergSchema([]), nowMillis: 1_700_000_000_000)
    }

    static func loaded(_ location: String = "s3://bucket/t", config: JSONValue = [:], credentials: JSONValue = .null) -> JSONValue {
        (["metadata-location": .string(location + "/metadata/1.json"), "metadata": metadata(location).json, "config": config] as JSONValue)
            .with("storage-credentials", credentials)
    }
}
