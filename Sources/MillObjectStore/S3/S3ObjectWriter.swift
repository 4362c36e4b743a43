import MillHTTPClient
import MillIO
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// An object on its way to S3.
///
/// What fits one part is one put, made by `finish`. What does not is a multipart upload: each full part goes out on a thread of its own,
/// `partsAtOnce` of them at a time, while the next one fills; a writer that is faster waits. `finish` sends the rest and completes.
///
/// Memory: `partsAtOnce` parts and the one that fills.
///
/// A part that cannot be sent ends the writer: the next write, or `finish`, throws what happened. Parts that arrived are taken back by
/// `abandon`; a process that ends before leaves them to the bucket's rule on incomplete uploads, seen by nobody.
///
/// Threading: one thread writes; threads of parts touch only what `state` guards.
final class S3ObjectWriter: ObjectWriter {
    private struct State {
        var written = 0
        /// The part that fills.
        var current: [UInt8] = []
        var uploadID: String?
        var partCount = 0
        /// Tags of the parts that arrived, by their numbers from 1.
        var tags: [Int: String] = [:]
        var underWay = 0
        var failure: IOFailure?
        var isOpen = true
    }

    private let client: S3Client
    private let place: S3Location
    private let cancellation = Cancellation()
    private let state = Mutex(State())
    /// Signalled by each part that ends.
    private let ended = Semaphore()

    init(_ client: S3Client, _ place: S3Location) {
        // A writer is given up by itself, or with all that its store does.
        self.client = client.cancellation == nil ? client.cancelled(by: cancellation) : client
        self.place = place
    }

    deinit { abandon() }

    private var partBytes: Int { max(client.options.partBytes, S3Options.partBytesMin) }
    var path: String { place.text }
    func size() -> Int { state.withLock { $0.written } }

    func write(_ buffer: UnsafeRawBufferPointer, at offset: Int) throws(IOFailure) {
        try check("write")
        let written = size()
        guard offset == written else {
            throw IOFailure(
                "write", path: path, errorNumber: EINVAL,
                detail: "an object is written from start to end: \(written) bytes are, the write is at \(offset)")
        }
        var rest = buffer
        while !rest.isEmpty {
            let isFull = state.withLock { state in
                if state.current.isEmpty { state.current.reserveCapacity(min(partBytes, max(rest.count, 1 << 20))) }
                let taken = min(rest.count, partBytes - state.current.count)
                state.current.append(contentsOf: rest[..<taken])
                state.written += taken
                rest = UnsafeRawBufferPointer(rebasing: rest[taken...])
                return state.current.count == partBytes
            }
            if isFull { try sendPart() }
        }
    }

    func finish() throws(IOFailure) {
        try check("finish")
        do throws(IOFailure) {
            let (isLarge, small) = state.withLock { ($0.uploadID != nil, $0.uploadID == nil ? $0.current : []) }
            if isLarge {
                if state.withLock({ !$0.current.isEmpty }) { try sendPart() }
                waitForParts(atMost: 0)
                try check("finish")
                try complete()
            } else {
                try client.put(place, small, .always)
            }
            state.withLock { state in
                state.isOpen = false
                state.uploadID = nil
                state.current = []
            }
        } catch {
            state.withLock { $0.failure = error }
            abandon()
            throw error
        }
    }

    func abandon() {
        let isOpen = state.withLock { state in
            defer { state.isOpen = false }
            state.current = []
            return state.isOpen
        }
        guard isOpen else { return }
        cancellation.cancel()
        waitForParts(atMost: 0)
        guard let uploadID = state.withLock({ $0.uploadID }) else { return }
        // A store that is away keeps the parts until its own rule removes them: nobody sees them.
        let request = S3Client.Request(method: "DELETE", location: place, query: [("uploadId", uploadID)])
        _ = try? client.cancelled(by: Cancellation()).send(request)
    }

    func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(IOFailure) -> Int { throw writeOnly("read") }
    func truncate(to size: Int) throws(IOFailure) { throw writeOnly("truncate") }
    /// `finish` is what makes it durable.
    func sync() {}

    // MARK: Parts

    private func writeOnly(_ operation: String) -> IOFailure {
        IOFailure(operation, path: path, errorNumber: EBADF, detail: "the object is being written from start to end")
    }

    private func check(_ operation: String) throws(IOFailure) {
        let (failure, isOpen) = state.withLock { ($0.failure, $0.isOpen) }
        if let failure { throw failure }
        guard isOpen else { throw IOFailure(operation, path: path, errorNumber: EBADF, detail: "the object is finished or abandoned") }
    }

    private func waitForParts(atMost count: Int) {
        while state.withLock({ $0.underWay }) > count { ended.wait() }
    }

    /// Sends the part that is full, or the last one, when its turn comes.
    private func sendPart() throws(IOFailure) {
        let uploadID = try startedUpload()
        waitForParts(atMost: max(client.options.partsAtOnce, 1) - 1)
        try check("write")
        let (number, bytes) = state.withLock { state in
            state.partCount += 1
            defer { state.current = [] }
            return (state.partCount, state.current)
        }
        guard number <= S3Options.partCountMax else {
            throw IOFailure(
                "write", path: path, errorNumber: EFBIG,
                detail:
                    "an object has at most \(S3Options.partCountMax) parts, of \(partBytes) bytes here"
            )
        }
        state.withLock { $0.underWay += 1 }
        do throws(ThreadFailure) {
            _ = try PinnedThread(stackBytes: 1 << 20) { [self] in
                send(bytes, as: number, of: uploadID)
                state.withLock { $0.underWay -= 1 }
                ended.signal()
            }
        } catch {
            state.withLock { $0.underWay -= 1 }
            throw IOFailure("write", path: path, errorNumber: error.errorNumber, detail: error.description)
        }
    }

    private func startedUpload() throws(IOFailure) -> String {
        if let uploadID = state.withLock({ $0.uploadID }) { return uploadID }
        let response = try client.answered("write", .init(method: "POST", location: place, query: [("uploads", "")])).response
        guard response.isSuccess else { throw client.failure("write", place, response) }
        guard let uploadID = XMLElement(document: response.body)?["UploadId"]?.text, !uploadID.isEmpty else {
            throw IOFailure("write", path: path, errorNumber: EIO, detail: "the store started an upload without a name: \(response.words)")
        }
        state.withLock { $0.uploadID = uploadID }
        return uploadID
    }

    private func send(_ bytes: [UInt8], as number: Int, of uploadID: String) {
        do throws(IOFailure) {
            let request = S3Client.Request(
                method: "PUT", location: place, query: [("partNumber", "\(number)"), ("uploadId", uploadID)], body: bytes)
            let response = try client.answered("write", request).response
            guard response.isSuccess else { throw client.failure("write", place, response) }
            guard let tag = response.headers["ETag"] else {
                throw IOFailure("write", path: path, errorNumber: EIO, detail: "the store took a part and gave no ETag for it")
            }
            state.withLock { $0.tags[number] = tag }
        } catch {
            state.withLock { $0.failure = $0.failure ?? error }
            // The others are in vain.
            cancellation.cancel()
        }
    }

    // MARK: Completion

    private func complete() throws(IOFailure) {
        let (uploadID, tags, count) = state.withLock { ($0.uploadID ?? "", $0.tags, $0.partCount) }
        let parts = (1...max(count, 1)).map { number in
            "<Part><PartNumber>\(number)</PartNumber><ETag>\(XMLElement.escaped(tags[number] ?? "") ?? "")</ETag></Part>"
        }
        let body = Array("<CompleteMultipartUpload>\(parts.joined())</CompleteMultipartUpload>".utf8)
        let request = S3Client.Request(
            method: "POST", location: place, query: [("uploadId", uploadID)], headers: [("Content-Type", "application/xml")], body: body,
            mayFailLate: true)
        let outcome: RetryingSender.Outcome
        do throws(IOFailure) { outcome = try client.answered("finish", request) } catch {
            // The answer was lost, not necessarily the request.
            if isComplete(tags, count) { return }
            throw error
        }
        let refusal = S3Refusal(outcome.response)
        if outcome.response.isSuccess, refusal.rootName == "CompleteMultipartUploadResult" { return }
        // A success that does not say so, or what a try before may have done.
        let isOpen = outcome.response.isSuccess ? refusal.code.isEmpty : outcome.isRepeated && refusal.isMissing
        if isOpen, isComplete(tags, count) { return }
        guard !outcome.response.isSuccess else {
            throw IOFailure(
                "finish", path: path, errorNumber: EIO,
                detail: refusal.words(region: client.options.region, nowMicros: client.clock.nowMicros))
        }
        throw client.failure("finish", place, outcome.response)
    }

    /// Whether the object that is there is surely this one: by its size and the tag that S3 makes of the tags of its parts.
    private func isComplete(_ tags: [Int: String], _ count: Int) -> Bool {
        var digests: [UInt8] = []
        for number in 1...max(count, 1) {
            guard let digest = Digest.bytes(hexadecimal: (tags[number] ?? "").filter { $0 != "\"" }), digest.count == 16 else {
                return false
            }
            digests += digest
        }
        let wanted = "\"\(Digest.hexadecimal(Digest.md5(digests)))-\(count)\""
        guard let entry = try? client.look(at: place) else { return false }
        return entry.byteCount == size() && entry.tag == wanted
    }
}
