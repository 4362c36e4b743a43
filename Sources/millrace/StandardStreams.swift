#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Lines for people on standard error, written whole and at once.
enum StandardError {
    static func write(_ text: String) { writeAll(text, to: 2) }
}

/// Results on standard output, written whole and at once, so that a pipe sees them in order.
enum StandardOutput {
    static func write(_ text: String) { writeAll(text, to: 1) }
    static var isTerminal: Bool { isatty(1) == 1 }
}

private func writeAll(_ text: String, to descriptor: Int32) {
    var text = text
    text.withUTF8 { bytes in
        var done = 0
        while done < bytes.count {
            let count = write(descriptor, bytes.baseAddress! + done, bytes.count - done)
            if count <= 0 { return }
            done += count
        }
    }
}
