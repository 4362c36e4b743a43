#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// What the whole process has used so far.
enum ProcessUsage {
    struct Reading { var cpuSeconds: Double }

    static var now: Reading {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
        return Reading(cpuSeconds: seconds(usage.ru_utime) + seconds(usage.ru_stime))
    }

    /// Processor time that everything on the machine has used, to 10 ms; 0 where the system does not tell it (anything but Linux).
    static var machineCPUSeconds: Double {
        // cpu user nice system idle iowait irq softirq ...
        let fields = firstLine(of: "/proc/stat").split(separator: " ").dropFirst()
        return ticks(fields.prefix(3)) + ticks(fields.dropFirst(5).prefix(2))
    }

    /// The sum of what the system counts in ticks, in seconds.
    static func ticks(_ fields: some Sequence<Substring>) -> Double {
        fields.reduce(0) { $0 + (Double($1) ?? 0) } / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    /// Empty when there is no such file.
    static func firstLine(of path: String) -> String {
        guard let file = fopen(path, "r") else { return "" }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 1024)
        guard fgets(&line, Int32(line.count), file) != nil else { return "" }
        return String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Begins a new maximum, where the system can (Linux).
    static func resetPeakMemory() {
        let descriptor = open("/proc/self/clear_refs", O_WRONLY)
        guard descriptor >= 0 else { return }
        _ = write(descriptor, "5", 1)
        close(descriptor)
    }

    /// The most memory that was resident since the last reset.
    static var peakMemoryBytes: Int {
        guard let status = fopen("/proc/self/status", "r") else { return 0 }
        defer { fclose(status) }
        var line = [CChar](repeating: 0, count: 256)
        while fgets(&line, Int32(line.count), status) != nil {
            let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            if text.hasPrefix("VmHWM:") { return (Int(text.split(whereSeparator: \.isWhitespace)[1]) ?? 0) * 1024 }
        }
        return 0
    }
}
