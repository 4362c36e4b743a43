#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A thread of our own for a run-to-completion loop, with a stack deep enough for long chains of views.
package final class PinnedThread: @unchecked Sendable {
    // Safe to share: `handle` is written once before the object is visible to anyone else.
    private var handle: pthread_t?

    private final class Body {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Starts at once.
    package init(stackBytes: Int = 16 << 20, _ run: @escaping @Sendable () -> Void) {
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
        precondition(status == 0, "the system can start another thread")
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
