import MillIO

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Commands from a script beside a test, a line each over the named pipe `commands` of a directory; answers go back over `answers`. So
/// another program can look at what our code did, and our code at what it did. Words are separated by tabs.
package enum CommandPipes {
    /// Answers until the script closes its end: `ok` and what the body gives, or `error`, its name, and what happened.
    package static func serve(_ directory: String, _ body: ([String]) throws -> String) throws {
        guard let commands = fopen(directory + "/commands", "r"), let answers = fopen(directory + "/answers", "w") else {
            throw IOFailure("open", path: directory, errorNumber: errno)
        }
        var line: UnsafeMutablePointer<CChar>?
        var room = 0
        defer {
            free(line)
            fclose(commands)
            fclose(answers)
        }
        while getline(&line, &room, commands) > 0, let text = line.map({ String(cString: $0) }) {
            let words = text.dropLast().split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
            let answer: String
            do { answer = "ok\t" + (try body(words)) } catch let failure as IOFailure {
                answer = "error\t\(name(failure.errorNumber))\t\(failure.detail ?? "")"
            } catch { answer = "error\t\(error)" }
            fputs(answer.split(separator: "\n", omittingEmptySubsequences: false).joined(separator: " ") + "\n", answers)
            fflush(answers)
        }
    }

    /// The few error numbers that stores and catalogs give.
    private static func name(_ errorNumber: Int32) -> String {
        switch errorNumber {
        case ENOENT: "ENOENT"
        case EEXIST: "EEXIST"
        case EACCES: "EACCES"
        case EIO: "EIO"
        case ETIMEDOUT: "ETIMEDOUT"
        case EINVAL: "EINVAL"
        case ESTALE: "ESTALE"
        default: "\(errorNumber)"
        }
    }
}
