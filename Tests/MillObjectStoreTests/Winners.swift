import Synchronization

/// Who came first, noted by several threads.
final class Winners: Sendable {
    private let noted = Mutex<[Int]>([])
    var all: [Int] { noted.withLock { $0 } }
    func add(_ writer: Int) { noted.withLock { $0.append(writer) } }
}
