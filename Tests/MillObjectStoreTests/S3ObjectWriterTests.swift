import MillHTTPClient
import MillIO
import MillTestKit
import Synchronization
import Testing

@testable import MillObjectStore

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

@Suite struct S3ObjectWriterTests {
    private let fake = FakeS3()
    private static let partBytes = S3Options.partBytesMin

    private func store(_ transport: any HTTPTransport) throws -> S3ObjectStore {
        var options = S3Options(
            endpoint: "http://fake:9000", credentials: FixedCredentials(S3Credentials(accessKeyID: "id", secretAccessKey: "secret")))
        options.partBytes = Self.partBytes
        options.retries = RetryPolicy(triesMax: 3)
        return try S3ObjectStore(
            options, transport: transport,
            environment: Environment(files: MemoryFileSystem(), clock: VirtualClock(), random: SeededSource(5)))
    }

    /// Bytes that are not the same in any two parts.
    private func content(_ count: Int) -> [UInt8] {
        let block = (0..<65_537).map { UInt8(truncatingIfNeeded: $0 >> 8 ^ $0) }
        var bytes: [UInt8] = []
        while bytes.count < count { bytes += block }
        bytes.removeLast(bytes.count - count)
        return bytes
    }

    /// Writes in pieces of odd sizes.
    private func write(_ bytes: [UInt8], to writer: any ObjectWriter) throws {
        var start = 0
        while start < bytes.count {
            let end = min(start + 777_777, bytes.count)
            try bytes[start..<end].withUnsafeBytes { try writer.write($0, at: start) }
            start = end
        }
    }

    private func isPart(_ request: HTTPRequest) -> Bool { request.url.contains("partNumber=") }
    private func isCompletion(_ request: HTTPRequest) -> Bool { request.method == "POST" && request.url.contains("uploadId=") }

    @Test func sizesAroundAPartArriveWhole() throws {
        for count in [0, 1, Self.partBytes - 1, Self.partBytes, Self.partBytes + 1, 3 * Self.partBytes + 12_345] {
            let transport = fake.transport
            let writer = try store(transport).openForWriting("s3://bucket/f\(count)")
            let bytes = content(count)
            try write(bytes, to: writer)
            #expect(!fake.keys.contains("f\(count)"))
            try writer.finish()
            #expect(try store(transport).get("s3://bucket/f\(count)") == bytes)
            #expect(transport.requests.filter(isPart).count == (count < Self.partBytes ? 0 : (count + Self.partBytes - 1) / Self.partBytes))
            #expect(fake.uploadCount == 0)
        }
    }

    @Test func noMorePartsAreUnderWayThanAllowed() throws {
        let current = Atomic(0)
        let most = Atomic(0)
        let real = fake.transport
        let transport = ScriptedTransport { request in
            guard request.url.contains("partNumber=") else { return Result { () throws(IOFailure) in try real.send(request) } }
            let count = current.add(1, ordering: .sequentiallyConsistent).newValue
            most.max(count, ordering: .sequentiallyConsistent)
            defer { current.subtract(1, ordering: .sequentiallyConsistent) }
            return Result { () throws(IOFailure) in try real.send(request) }
        }
        let writer = try store(transport).openForWriting("s3://bucket/f")
        try write(content(8 * Self.partBytes), to: writer)
        try writer.finish()
        #expect((1...3).contains(most.load(ordering: .sequentiallyConsistent)))
    }

    @Test func aPartThatFailsEndsTheWriterAndTheUpload() throws {
        let real = fake.transport
        let transport = ScriptedTransport { request in
            request.url.contains("partNumber=2")
                ? .success(HTTPResponse(status: 403, body: Array("<Error><Code>AccessDenied</Code></Error>".utf8)))
                : Result { () throws(IOFailure) in try real.send(request) }
        }
        let writer = try store(transport).openForWriting("s3://bucket/f")
        let failure = #expect(throws: IOFailure.self) {
            try write(content(6 * Self.partBytes), to: writer)
            try writer.finish()
        }
        #expect(failure?.errorNumber == EACCES)
        writer.abandon()
        #expect(fake.keys.isEmpty && fake.uploadCount == 0)
    }

    @Test func partsAreTriedAgain() throws {
        let failures = Atomic(2)
        let real = fake.transport
        let transport = ScriptedTransport { request in
            if request.url.contains("partNumber=1&"), failures.load(ordering: .relaxed) > 0 {
                failures.subtract(1, ordering: .relaxed)
                return .success(HTTPResponse(status: 503))
            }
            return Result { () throws(IOFailure) in try real.send(request) }
        }
        let writer = try store(transport).openForWriting("s3://bucket/f")
        let bytes = content(2 * Self.partBytes + 7)
        try write(bytes, to: writer)
        try writer.finish()
        #expect(try store(real).get("s3://bucket/f") == bytes)
    }

    @Test(arguments: [1, 3]) func aCompletionWhoseAnswerIsLostIsFoundDone(_ lost: Int) throws {
        let left = Atomic(lost)
        let real = fake.transport
        let transport = ScriptedTransport { request in
            let answer = Result { () throws(IOFailure) in try real.send(request) }
            guard request.method == "POST", request.url.contains("uploadId="), left.load(ordering: .relaxed) > 0 else { return answer }
            left.subtract(1, ordering: .relaxed)
            return .failure(IOFailure("POST", path: "http://fake", errorNumber: ECONNRESET))
        }
        let writer = try store(transport).openForWriting("s3://bucket/f")
        let bytes = content(2 * Self.partBytes)
        try write(bytes, to: writer)
        try writer.finish()
        #expect(try store(real).get("s3://bucket/f") == bytes)
    }

    @Test func aCompletionThatFailsLateIsAFailure() throws {
        let real = fake.transport
        let transport = ScriptedTransport { request in
            guard request.method == "POST", request.url.contains("uploadId=") else {
                return Result { () throws(IOFailure) in try real.send(request) }
            }
            return .success(
                HTTPResponse(status: 200, body: Array("  \n<Error><Code>InternalError</Code><Message>late</Message></Error>".utf8)))
        }
        let writer = try store(transport).openForWriting("s3://bucket/f")
        try write(content(2 * Self.partBytes), to: writer)
        let failure = #expect(throws: IOFailure.self) { try writer.finish() }
        #expect(failure?.errorNumber == EIO && failure?.detail?.contains("late") == true)
        #expect(fake.keys.isEmpty && fake.uploadCount == 0)
    }

    @Test func aSuccessThatDoesNotSaySoIsLookedInto() throws {
        for isDone in [true, false] {
            let fake = FakeS3()
            let real = fake.transport
            let transport = ScriptedTransport { request in
                guard request.method == "POST", request.url.contains("uploadId=") else {
                    return Result { () throws(IOFailure) in try real.send(request) }
                }
                if isDone { _ = try? real.send(request) }  // Its answer is kept back.
                return .success(HTTPResponse(status: 200))
            }
            let writer = try store(transport).openForWriting("s3://bucket/f")
            try write(content(2 * Self.partBytes), to: writer)
            if isDone { try writer.finish() } else { #expect(throws: IOFailure.self) { try writer.finish() } }
            #expect(fake.keys == (isDone ? ["f"] : []) && fake.uploadCount == 0)
        }
    }

    @Test func abandonedUploadsAreTakenBack() throws {
        let writer = try store(fake.transport).openForWriting("s3://bucket/f")
        try write(content(3 * Self.partBytes), to: writer)
        writer.abandon()
        #expect(fake.keys.isEmpty && fake.uploadCount == 0)
        #expect(throws: IOFailure.self) { try write([1], to: writer) }
    }
}
