import MillIO
import Synchronization
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// What every file system promises of names, asked of each.
@Suite struct FileSystemSuite {
    enum Kind: String, CaseIterable { case local, memory, readOnly }

    /// A file system and a directory of it, alive while this is.
    final class Place {
        let files: any FileSystem
        let directory: String

        init(_ kind: Kind) throws {
            switch kind {
            case .local:
                var template = Array("/tmp/millrace-names-XXXXXX".utf8CString)
                (files, directory) = (LocalFileSystem(), String(cString: try #require(mkdtemp(&template))))
            case .memory: (files, directory) = (MemoryFileSystem(), "/d")
            case .readOnly: (files, directory) = (ReadOnlyFileSystem(MemoryFileSystem()), "/d")
            }
            try files.createDirectory(directory)
        }

        deinit { try? files.remove(directory) }  // Left to the system's temporary files.

        func make(_ name: String, _ text: String) throws { try put(text, files.open(directory + "/" + name, .create)) }
    }

    @Test(arguments: Kind.allCases) func aLinkTakesAFreeNameOnly(_ kind: Kind) throws {
        let place = try Place(kind)
        try place.make("a", "first")
        try place.make("b", "second")
        try place.files.link(place.directory + "/a", to: place.directory + "/c")
        let failure = #expect(throws: IOFailure.self) { try place.files.link(place.directory + "/b", to: place.directory + "/c") }
        #expect(failure?.errorNumber == EEXIST)
        try place.files.remove(place.directory + "/a")
        #expect(try content(place.files.open(place.directory + "/c", .read)) == "first")
        #expect(throws: IOFailure.self) { try place.files.link(place.directory + "/none", to: place.directory + "/e") }
    }

    @Test(arguments: Kind.allCases) func aLookTellsOneFileFromAnother(_ kind: Kind) throws {
        let place = try Place(kind)
        let look = { try place.files.look(at: place.directory + "/" + $0) }
        #expect(try look("a") == nil && look("a/b") == nil)
        try place.make("a", "text")
        let first = try #require(try look("a"))
        #expect(first.byteCount == 4 && !first.isDirectory)
        #expect(try look("a") == first)
        try place.make("b", "text")
        #expect(try look("b")?.number != first.number)
        try place.files.rename(place.directory + "/b", to: place.directory + "/a")
        #expect(try look("a")?.number != first.number && look("b") == nil)
        try place.files.createDirectory(place.directory + "/s")
        if kind != .readOnly { #expect(try look("s")?.isDirectory == true) }
    }

    @Test(arguments: Kind.allCases) func aDirectoryIsOneHoldersAtATime(_ kind: Kind) throws {
        let place = try Place(kind)
        let (files, directory) = (place.files, place.directory)
        let inside = Counter()
        let threads = try (0..<6).map { _ in
            try PinnedThread {
                for _ in 0..<50 {
                    guard let lock = try? files.lock(directory) else { continue }
                    withExtendedLifetime(lock) { inside.pass() }
                }
            }
        }
        for thread in threads { thread.join() }
        #expect(inside.passes == 300 && inside.most == 1)
    }

    /// How many were in at once.
    private final class Counter: Sendable {
        private let state = Mutex((current: 0, most: 0, passes: 0))
        var most: Int { state.withLock { $0.most } }
        var passes: Int { state.withLock { $0.passes } }

        func pass() {
            state.withLock { state in
                state.current += 1
                state.most = max(state.most, state.current)
            }
            sched_yield()
            state.withLock { state in
                state.current -= 1
                state.passes += 1
            }
        }
    }
}
