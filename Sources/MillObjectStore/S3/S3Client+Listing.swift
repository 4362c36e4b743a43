import MillHTTPClient
import MillIO

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

extension S3Client {
    /// The most pages of one listing, full or not.
    private static let pageCountMax = 100_000

    /// All objects whose keys begin with the place's, page by page.
    func list(_ place: S3Location) throws(IOFailure) -> [ObjectEntry] {
        var entries: [ObjectEntry] = []
        var token: String?
        var pageCount = 0
        repeat {
            pageCount += 1
            let page = try page(place, token)
            entries += page.entries
            guard entries.count <= options.listCountMax else {
                throw IOFailure("list", path: place.text, errorNumber: EFBIG, detail: "there are more than \(options.listCountMax) objects")
            }
            guard page.next == nil || (page.next != token && pageCount < Self.pageCountMax) else {
                throw IOFailure("list", path: place.text, errorNumber: EIO, detail: "the store's listing does not end")
            }
            token = page.next
        } while token != nil
        return entries.sorted { $0.location.utf8.lexicographicallyPrecedes($1.location.utf8) }
    }

    private func page(_ place: S3Location, _ token: String?) throws(IOFailure) -> (entries: [ObjectEntry], next: String?) {
        var bucket = place
        bucket.key = ""
        var query = [("list-type", "2"), ("prefix", place.key), ("encoding-type", "url"), ("max-keys", "1000")].map {
            (name: $0.0, value: $0.1)
        }
        if let token { query.append(("continuation-token", token)) }
        let response = try answered("list", Request(method: "GET", location: bucket, query: query)).response
        guard response.isSuccess else { throw failure("list", place, response) }
        guard let root = XMLElement(document: response.body), root.name == "ListBucketResult" else {
            throw IOFailure("list", path: place.text, errorNumber: EIO, detail: "the store's answer is no listing: \(response.words)")
        }
        let isEncoded = root["EncodingType"]?.text == "url"
        var entries: [ObjectEntry] = []
        for object in root.all("Contents") {
            guard let key = object["Key"]?.text, let byteCount = object["Size"].flatMap({ Int($0.text) }), byteCount >= 0 else {
                throw IOFailure("list", path: place.text, errorNumber: EIO, detail: "the store's listing has an object without key or size")
            }
            entries.append(
                ObjectEntry(
                    location: place.location(of: isEncoded ? PercentEncoding.decode(key) : key), byteCount: byteCount,
                    tag: object["ETag"]?.text,
                    modifiedMicros: object["LastModified"].flatMap { HTTPDate.microsOfISO8601($0.text) } ?? 0))
        }
        guard root["IsTruncated"]?.text == "true" else { return (entries, nil) }
        guard let next = root["NextContinuationToken"]?.text, !next.isEmpty else {
            throw IOFailure(
                "list", path: place.text, errorNumber: EIO, detail: "the store's listing is cut off and does not say where it goes on")
        }
        return (entries, next)
    }
}
