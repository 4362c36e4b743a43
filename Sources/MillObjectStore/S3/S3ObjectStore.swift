package import MillHTTPClient
package import MillIO

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Objects in Amazon's S3 or a store that speaks its protocol, at `s3://bucket/key`.
///
/// Source: "Amazon S3 API Reference" of AWS: PutObject, GetObject, HeadObject, ListObjectsV2, DeleteObjects and the multipart upload.
///
/// Conditions are `If-None-Match: *` and `If-Match`, decided by the store. When the answer to a try was lost and the next is told that the
/// condition does not hold, the object is read: if it is what was to be put, the lost try put it. A store that does not know the conditions
/// overwrites instead; `enforcesConditions` finds that out, and who relies on conditions asks it first.
///
/// Threading: any thread; blocks it, waits between tries included.
package struct S3ObjectStore: ObjectStore {
    let client: S3Client
    private let random: any RandomSource

    /// - Throws: `EINVAL` for an endpoint that is none. The store is not asked anything yet.
    package init(_ options: S3Options, transport: any HTTPTransport, environment: Environment, cancellation: Cancellation? = nil)
        throws(IOFailure)
    {
        client = try S3Client(options, transport: transport, environment: environment, cancellation: cancellation)
        random = environment.random
    }

    package func put(_ location: String, _ bytes: [UInt8], _ condition: PutCondition) throws(IOFailure) {
        try client.put(try S3Location.object(location, "put"), bytes, condition)
    }

    package func get(_ location: String) throws(IOFailure) -> [UInt8] {
        try client.get(try S3Location.object(location, "get"))
    }

    package func look(at location: String) throws(IOFailure) -> ObjectEntry? {
        try client.look(at: try S3Location.object(location, "look at"))
    }

    package func openForReading(_ location: String) throws(IOFailure) -> any File {
        let place = try S3Location.object(location, "open")
        guard let entry = try client.look(at: place) else {
            throw IOFailure("open", path: location, errorNumber: ENOENT, detail: "there is no such object")
        }
        return S3Object(client, place, entry)
    }

    package func openForWriting(_ location: String) throws(IOFailure) -> any ObjectWriter {
        S3ObjectWriter(client, try S3Location.object(location, "write"))
    }

    package func list(_ prefix: String) throws(IOFailure) -> [ObjectEntry] { try client.list(try S3Location(prefix, "list")) }

    package func remove(_ locations: [String]) throws(IOFailure) {
        var places: [S3Location] = []
        for location in locations { places.append(try S3Location.object(location, "remove")) }
        try client.remove(places)
    }

    /// A URL by which anyone may read (`GET`) or put (`PUT`) an object for some time, at most seven days.
    package func presigned(_ method: String, _ location: String, seconds: Int) throws(IOFailure) -> String {
        guard (1...604_800).contains(seconds) else {
            throw IOFailure("presign", path: location, errorNumber: EINVAL, detail: "a URL holds for 1 to 604800 seconds, not \(seconds)")
        }
        return try client.presigned(method, try S3Location.object(location, "presign"), seconds: seconds)
    }

    /// Whether the store decides conditions of puts: tries it with an object of its own beginning with `prefix`.
    package func enforcesConditions(under prefix: String) throws(IOFailure) -> Bool {
        let place = try S3Location.object(prefix + "condition-\(random.next())", "put")
        try client.put(place, [1], .isMissing)
        defer { try? client.remove([place]) }  // One byte that nobody reads is no reason to fail.
        do throws(IOFailure) {
            try client.put(place, [2], .isMissing)
            return false
        } catch {
            guard error.errorNumber == EEXIST else { throw error }
            return true
        }
    }
}

extension S3Client {
    func put(_ place: S3Location, _ bytes: [UInt8], _ condition: PutCondition) throws(IOFailure) {
        var headers: [(name: String, value: String)] = []
        switch condition {
        case .always: break
        case .isMissing: headers = [("If-None-Match", "*")]
        case .hasTag(let tag): headers = [("If-Match", tag)]
        }
        let outcome = try answered("put", Request(method: "PUT", location: place, headers: headers, body: bytes))
        if outcome.response.isSuccess { return }
        let refusal = S3Refusal(outcome.response)
        // A condition on a tag of an object that is gone is answered by 404, which is no missing bucket.
        let isUnmet = refusal.isUnmet || (condition != .always && refusal.isMissing && refusal.code != "NoSuchBucket")
        guard isUnmet else { throw failure("put", place, outcome.response) }
        if outcome.isRepeated, let stored = try? get(place), stored == bytes { return }  // The lost try was the one.
        throw IOFailure(
            "put", path: place.text, errorNumber: EEXIST,
            detail: condition == .isMissing ? "there is an object already" : "it is another object by now")
    }

    func get(_ place: S3Location) throws(IOFailure) -> [UInt8] {
        let outcome = try answered("get", Request(method: "GET", location: place, responseBytesMax: options.getBytesMax))
        guard outcome.response.isSuccess else { throw failure("get", place, outcome.response) }
        return outcome.response.body
    }

    func look(at place: S3Location) throws(IOFailure) -> ObjectEntry? {
        let response = try answered("look at", Request(method: "HEAD", location: place)).response
        if response.status == 404 { return nil }
        guard response.isSuccess else { throw failure("look at", place, response) }
        guard let byteCount = response.headers["Content-Length"].flatMap({ Int($0) }), byteCount >= 0 else {
            throw IOFailure("look at", path: place.text, errorNumber: EIO, detail: "the store's answer has no Content-Length")
        }
        return ObjectEntry(
            location: place.text, byteCount: byteCount, tag: response.headers["ETag"],
            modifiedMicros: response.headers["Last-Modified"].flatMap { HTTPDate.micros($0) } ?? 0)
    }

    /// An answer; a failure without one is put in the words of the operation.
    func answered(
        _ operation: String, _ request: Request, receiving buffer: UnsafeMutableRawBufferPointer? = nil
    ) throws(IOFailure) -> RetryingSender.Outcome {
        do throws(IOFailure) { return try send(request, receiving: buffer) } catch { throw away(operation, request.location, error) }
    }
}
