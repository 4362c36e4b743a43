package import MillIO

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Has a virtual machine's host hand out memory before it is measured what needs it.
///
/// A page that such a machine uses for the first time, or for the first time in a while when free memory goes back to the host, costs
/// what the host takes to find one: ten times what a page costs that is there, all of it in whoever writes to it. A log that grows
/// by 200 MB a second takes that many new pages for the cache. A machine that has run for a while has all its memory; one that
/// has just started, or has been idle, has not. So a run touches as much as it will write, and gives it back just before.
package struct MemoryTouch: Sendable {
    /// For a MiB, page by page.
    package var millisPerMebibyte: Double
    package var byteCount: Int

    private static let pageBytes = 4096

    /// Writes to one byte of each page of new memory and gives the memory back. At most half of what is free is touched.
    package init(byteCount wanted: Int, clock: any Clock) throws {
        let free = max(sysconf(Int32(_SC_AVPHYS_PAGES)), 0) * max(sysconf(Int32(_SC_PAGESIZE)), 1)
        byteCount = Self.touched(wanted, free: free)
        guard let memory = mmap(nil, byteCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), memory != MAP_FAILED else {
            throw BenchFailure("the system has no \(byteCount) bytes of memory: \(systemMessage(errno))")
        }
        let start = clock.monotonicNanos
        for page in stride(from: 0, to: byteCount, by: Self.pageBytes) { memory.storeBytes(of: 1, toByteOffset: page, as: UInt8.self) }
        millisPerMebibyte = Double(clock.monotonicNanos - start) / 1e6 / (Double(byteCount) / Double(1 << 20))
        munmap(memory, byteCount)
    }

    /// Whole pages, at least one.
    static func touched(_ wanted: Int, free: Int) -> Int { max(min(wanted, free / 2) / pageBytes, 1) * pageBytes }
}
