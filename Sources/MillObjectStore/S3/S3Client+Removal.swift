import MillHTTPClient
import MillIO

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

extension S3Client {
    /// What one request may remove.
    private static let batchCountMax = 1000

    /// Removes objects, many by one request where the store can. All are tried, whatever fails.
    ///
    /// - Throws: the first failure, which says how many there were.
    func remove(_ places: [S3Location]) throws(IOFailure) {
        var failures: [IOFailure] = []
        let buckets = Dictionary(grouping: places) { $0.bucket }.sorted { $0.key < $1.key }
        for (_, places) in buckets {
            // A key that XML cannot say goes by a request of its own, and so does one that is alone.
            let named = places.filter { XMLElement.escaped($0.key) != nil }
            var single = places.filter { XMLElement.escaped($0.key) == nil }
            if named.count == 1 { single += named }
            for start in stride(from: 0, to: named.count == 1 ? 0 : named.count, by: Self.batchCountMax) {
                let batch = Array(named[start..<min(start + Self.batchCountMax, named.count)])
                do throws(IOFailure) {
                    if let found = try removeAtOnce(batch) { failures += found } else { single += batch }
                } catch { failures.append(error) }
            }
            for place in single {
                do throws(IOFailure) { try removeOne(place) } catch { failures.append(error) }
            }
        }
        guard var first = failures.first else { return }
        if failures.count > 1 { first.detail = "\(first.detail ?? ""); \(failures.count - 1) more like it" }
        throw first
    }

    private func removeOne(_ place: S3Location) throws(IOFailure) {
        let response = try answered("remove", Request(method: "DELETE", location: place)).response
        guard response.isSuccess || response.status == 404 else { throw failure("remove", place, response) }
    }

    /// - Returns: what could not be removed; nil when the store does not know such requests.
    private func removeAtOnce(_ batch: [S3Location]) throws(IOFailure) -> [IOFailure]? {
        guard var bucket = batch.first else { return [] }
        bucket.key = ""
        let keys = batch.map { "<Object><Key>\(XMLElement.escaped($0.key) ?? "")</Key></Object>" }.joined()
        let body = Array("<Delete><Quiet>true</Quiet>\(keys)</Delete>".utf8)
        // The one request of S3's that must have a digest besides its signature.
        let headers = [("Content-MD5", Digest.base64(Digest.md5(body))), ("Content-Type", "application/xml")].map {
            (name: $0.0, value: $0.1)
        }
        let response = try answered(
            "remove", Request(method: "POST", location: bucket, query: [("delete", "")], headers: headers, body: body)
        ).response
        if S3Refusal(response).isUnknown { return nil }
        guard response.isSuccess else { throw failure("remove", batch[0], response) }
        guard let root = XMLElement(document: response.body), root.name == "DeleteResult" else {
            throw IOFailure(
                "remove", path: batch[0].text, errorNumber: EIO, detail: "the store does not say what it removed: \(response.words)")
        }
        return root.all("Error").filter { $0["Code"]?.text != "NoSuchKey" }.map { error in
            let code = error["Code"]?.text ?? "an error without a code"
            return IOFailure(
                "remove", path: bucket.location(of: error["Key"]?.text ?? ""), errorNumber: code == "AccessDenied" ? EACCES : EIO,
                detail: "\(code): \(error["Message"]?.text ?? "")")
        }
    }
}
