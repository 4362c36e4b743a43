import MillBase
import MillPgWire
import NIOCore
import Synchronization

/// What others may do to a connection: cancel what it runs, end it.
///
/// The connection's task and this handle agree under one lock on who writes: the task owns the socket while it is busy;
/// while it waits for its client, an end is written by whoever ends it.
final class ConnectionHandle: Sendable {
    private struct State {
        var session: (any PgSession)?
        var isWaiting = false
        var termination: SQLError?
    }

    let key: CancelKey
    private let channel: any Channel
    private let state = Mutex(State())

    init(key: CancelKey, channel: any Channel) {
        self.key = key
        self.channel = channel
    }

    func attach(_ session: any PgSession) {
        state.withLock { $0.session = session }
    }

    /// Why the connection is to end, once someone asked for it.
    var termination: SQLError? { state.withLock { $0.termination } }

    /// The task is about to wait for its client. False when the connection is to end instead.
    func beginWaiting() -> Bool {
        state.withLock { state in
            guard state.termination == nil else { return false }
            state.isWaiting = true
            return true
        }
    }

    /// The client sent something. False when the connection was ended meanwhile; nothing may be written then.
    func endWaiting() -> Bool {
        state.withLock { state in
            guard state.isWaiting else { return false }
            state.isWaiting = false
            return true
        }
    }

    /// Cancels the running statement; one that is not running is not cancelled later.
    func cancel() {
        let running = state.withLock { $0.isWaiting ? nil : $0.session }
        running?.cancel()
    }

    /// Ends the connection: at once when it waits, else as soon as its statement has stopped.
    func terminate(_ error: SQLError) {
        enum Way {
            case none
            case write
            case stop((any PgSession)?)
        }
        let way: Way = state.withLock { state in
            guard state.termination == nil else { return .none }
            state.termination = error
            guard state.isWaiting else { return .stop(state.session) }
            state.isWaiting = false
            return .write
        }
        switch way {
        case .none: break
        case .stop(let session): session?.terminate()
        case .write:
            let channel = channel
            channel.writeAndFlush(Self.bytes(of: error, channel)).whenComplete { _ in channel.close(promise: nil) }
        }
    }

    /// Closes the socket of a connection that was ended but is still busy. Its client is told why, if the socket takes it at once:
    /// writes of the connection's task are whole messages, so this one fits between them.
    func close() {
        let channel = channel
        guard let error = termination else { return channel.close(promise: nil) }
        channel.eventLoop.execute {
            channel.writeAndFlush(Self.bytes(of: error, channel), promise: nil)
            channel.close(promise: nil)
        }
    }

    private static func bytes(of error: SQLError, _ channel: any Channel) -> ByteBuffer {
        var writer = MessageWriter()
        BackendMessage.errorResponse(ErrorResponse(.fatal, error)).encode(into: &writer)
        return channel.allocator.buffer(bytes: writer.bytes)
    }
}
