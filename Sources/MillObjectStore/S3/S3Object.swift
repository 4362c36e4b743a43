import MillHTTPClient
import MillIO

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// An object read by ranges. Each request has the tag the object had when it was opened, so that another one in its place is an error
/// (`ESTALE`) and never a mixture.
final class S3Object: File {
    private let client: S3Client
    private let place: S3Location
    private let entry: ObjectEntry

    init(_ client: S3Client, _ place: S3Location, _ entry: ObjectEntry) {
        self.client = client
        self.place = place
        self.entry = entry
    }

    var path: String { place.text }
    func size() -> Int { entry.byteCount }

    func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(IOFailure) -> Int {
        let count = max(0, min(buffer.count, entry.byteCount - offset))
        guard count > 0, offset >= 0 else { return 0 }
        var headers: [(name: String, value: String)] = [("Range", "bytes=\(offset)-\(offset + count - 1)")]
        if let tag = entry.tag { headers.append(("If-Match", tag)) }
        let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
        let request = S3Client.Request(method: "GET", location: place, headers: headers)
        let response = try client.answered("read", request, receiving: part).response
        if response.status == 412 {
            throw IOFailure("read", path: path, errorNumber: ESTALE, detail: "the object was replaced while it was read")
        }
        guard response.isSuccess else { throw client.failure("read", place, response) }
        // A store may answer with all of the object instead, which is the same when that was asked for.
        let isWhole = response.status == 200 && offset == 0 && count == entry.byteCount
        let isRange = response.status == 206 && (response.headers["Content-Range"]?.hasPrefix("bytes \(offset)-") ?? false)
        guard isWhole || isRange, response.byteCount == count else {
            throw IOFailure(
                "read", path: path, errorNumber: EIO,
                detail:
                    "the store answered \(response.status) with \(response.byteCount) bytes to a request for \(count) bytes at \(offset)")
        }
        return count
    }

    func write(_ buffer: UnsafeRawBufferPointer, at offset: Int) throws(IOFailure) { throw readOnly("write") }
    func truncate(to size: Int) throws(IOFailure) { throw readOnly("truncate") }
    func sync() {}

    private func readOnly(_ operation: String) -> IOFailure {
        IOFailure(operation, path: path, errorNumber: EBADF, detail: "the object was opened for reading")
    }
}
