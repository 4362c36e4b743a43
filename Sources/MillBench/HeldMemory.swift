package import MillIO

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Memory that a virtual machine's host has handed out, held until what is measured needs it.
///
/// A page that such a machine uses for the first time, or for the first time since the host took it back, costs what the host takes to
/// find one: ten times what a page costs that is there, all of it in whoever writes to it, and meanwhile the processor stands still for
/// everybody. Hosts take back what has been free for two seconds. A log that grows by 200 MB a second takes that many new pages for the
/// cache: a machine that has run for a while gives it those of files read long ago, one that has just started or has been idle has to ask
/// its host for each. So a run touches as much as it will write, and gives it back as it writes.
package final class HeldMemory {
    /// What a MiB cost that was touched page by page.
    package let millisPerMebibyte: Double
    private let memory: UnsafeMutableRawPointer
    private let byteCount: Int
    private(set) var givenBack = 0

    private static let pageBytes = 4096

    /// Writes to one byte of each page of new memory. At most half of what is free is held.
    package init(byteCount wanted: Int, clock: any Clock) throws {
        let free = max(sysconf(Int32(_SC_AVPHYS_PAGES)), 0) * max(sysconf(Int32(_SC_PAGESIZE)), 1)
        byteCount = Self.held(wanted, free: free)
        guard let memory = mmap(nil, byteCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), memory != MAP_FAILED else {
            throw BenchFailure("the system has no \(byteCount) bytes of memory: \(systemMessage(errno))")
        }
        self.memory = memory
        let start = clock.monotonicNanos
        for page in stride(from: 0, to: byteCount, by: Self.pageBytes) { memory.storeBytes(of: 1, toByteOffset: page, as: UInt8.self) }
        millisPerMebibyte = Double(clock.monotonicNanos - start) / 1e6 / (Double(byteCount) / Double(1 << 20))
    }

    deinit { giveBack(byteCount) }

    /// Gives back at least so many bytes, or what is left.
    func giveBack(_ count: Int) {
        let bytes = min((count + Self.pageBytes - 1) / Self.pageBytes * Self.pageBytes, byteCount - givenBack)
        guard bytes > 0 else { return }
        munmap(memory + givenBack, bytes)
        givenBack += bytes
    }

    /// Whole pages, at least one.
    static func held(_ wanted: Int, free: Int) -> Int { max(min(wanted, free / 2) / pageBytes, 1) * pageBytes }
}
