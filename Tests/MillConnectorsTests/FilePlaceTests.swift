import MillBase
import MillConnectorKit
import MillIO
import MillObjectStore
import Testing

@testable import MillConnectors

/// Objects as splits, by the tags that they had when they were found.
@Suite struct FilePlaceTests {
    private func put(_ text: String, at location: String, in store: MemoryObjectStore) throws {
        try store.put(location, Array(text.utf8), .always)
    }

    @Test func patternsNameObjectsAsTheyNameFiles() throws {
        let store = MemoryObjectStore()
        for key in [
            "a/1.json", "a/b/2.json", "a/_tmp/3.json", "a/.h/4.json", "a/c=x/5.json", "a/c=x/d/6.json", "ab/7.json", "a/8.txt", "a/",
        ] {
            try put("{}", at: "s3://lake/" + key, in: store)
        }
        func keys(_ pattern: String) throws -> [String] {
            try StoredPlace(pattern: "s3://lake/" + pattern, store: store).splits().map { String($0.topic.dropFirst("s3://lake/".count)) }
        }
        #expect(try keys("a/*.json") == ["a/1.json"])
        #expect(try keys("a/**/*.json") == ["a/1.json", "a/b/2.json", "a/c=x/5.json", "a/c=x/d/6.json"])
        #expect(try keys("a*/*") == ["a/1.json", "a/8.txt", "ab/7.json"])
        #expect(try keys("a") == ["a/1.json", "a/8.txt", "a/c=x/5.json"])
        #expect(try keys("a/") == ["a/1.json", "a/8.txt", "a/c=x/5.json"])
        #expect(try keys("a/1.json") == ["a/1.json"])
        #expect(try keys("none/*").isEmpty)
    }

    @Test func anObjectThatWasReplacedIsNeitherReadNorANewSplit() throws {
        let store = MemoryObjectStore()
        try put("old", at: "s3://lake/x", in: store)
        let before = StoredPlace(pattern: "s3://lake/*", store: store)
        let split = try #require(try before.splits().first)
        #expect(try before.byteCount(split) == 3)
        #expect(before.status == nil)
        try put("newer", at: "s3://lake/x", in: store)
        // One that has seen the first object itself, and one that was told of it, as after a restart.
        let after = StoredPlace(pattern: "s3://lake/*", store: store)
        after.expect([split])
        for place in [before, after] {
            #expect(try place.splits() == [split])
            #expect(place.status?.contains("s3://lake/x") == true)
            #expect(try place.byteCount(split) == nil)
            #expect(throws: SQLError.self) { try place.open(split) }
        }
        try store.remove(["s3://lake/x"])
        #expect(throws: SQLError.self) { try after.open(split) }
        #expect(try after.splits().isEmpty)
    }
}
