import MillIO

/// A name in the system's temporary directory that nobody has yet.
enum TemporaryDirectory {
    static func path(_ purpose: String) -> String {
        let folder = Environment.system.variable("TMPDIR") ?? "/tmp"
        return "\(folder)/millrace-\(purpose)-\(String(UInt32.random(in: .min ... .max), radix: 36))"
    }
}
