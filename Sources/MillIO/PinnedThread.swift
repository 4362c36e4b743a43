package import MillBase

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// The system would not start another thread, for want of memory or by a limit.
package struct ThreadFailure: Error, Sendable, Hashable, CustomStringConvertible, SQLErrorConvertible {
    package var errorNumber: Int32

    package init(errorNumber: Int32) { self.errorNumber = errorNumber }

    package var description: String { "could not start a thread: \(systemMessage(errorNumber))" }
    /// 53400.
    package var sqlError: SQLError {
        SQLError(.configurationLimitExceeded, description, hint: "Raise the limit on processes and threads (ulimit -u), or free memory.")
    }
}

/// A thread of our own for a run-to-completion loop, with a stack deep enough for long chains of views.
package final class PinnedThread: @unchecked Sendable {
    // Safe to share: `handle` is written once before the object is visible to anyone else.
    private var handle: pthread_t?

    private final class Body {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Starts at once.
    package init(stackBytes: Int = 16 << 20, _ run: @escaping @Sendable () -> Void) throws(ThreadFailure) {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        pthread_attr_setstacksize(&attributes, stackBytes)
        defer { pthread_attr_destroy(&attributes) }
        let body = Unmanaged.passRetained(Body { run() })
        var thread = pthread_t()
        let status = pthread_create(
            &thread, &attributes,
            { argument in
                let body = Unmanaged<Body>.fromOpaque(argument!).takeRetainedValue()
                body.run()
                return nil
            }, body.toOpaque())
        guard status == 0 else {
            body.release()
            throw ThreadFailure(errorNumber: status)
        }
        handle = thread
    }

    /// A thread that nobody waits for gives its stack back when it ends.
    deinit {
        if let thread = handle { pthread_detach(thread) }
    }

    /// Waits for the end; once.
    package func join() {
        guard let thread = handle else { return }
        handle = nil
        pthread_join(thread, nil)
    }
}
