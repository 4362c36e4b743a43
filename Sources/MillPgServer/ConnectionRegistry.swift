import MillBase
import MillPgWire
import NIOCore
import Synchronization

/// The open connections of a server by the process number in their cancel key.
final class ConnectionRegistry: Sendable {
    private struct State {
        var handles: [Int32: ConnectionHandle] = [:]
        var lastProcessID: Int32 = 0
        var isClosing = false
    }

    private let state = Mutex(State())

    /// A handle for a new connection, with a key that no open connection has.
    ///
    /// - Throws: 53300 at `limit` connections, 57P03 while the server stops.
    func register(_ channel: any Channel, limit: Int) throws(SQLError) -> ConnectionHandle {
        let handle: Result<ConnectionHandle, SQLError> = state.withLock { state in
            if state.isClosing { return .failure(SQLError(SQLState("57P03"), "the database system is shutting down")) }
            if state.handles.count >= limit { return .failure(SQLError(SQLState("53300"), "sorry, too many clients already")) }
            repeat {
                state.lastProcessID = state.lastProcessID == .max ? 1 : state.lastProcessID + 1
            } while state.handles[state.lastProcessID] != nil
            // The secret guards against other users' cancels, so it comes from the system's generator, not from a seed.
            let key = CancelKey(processID: state.lastProcessID, secret: .random(in: .min ... .max))
            let handle = ConnectionHandle(key: key, channel: channel)
            state.handles[key.processID] = handle
            return .success(handle)
        }
        return try handle.get()
    }

    func remove(_ handle: ConnectionHandle) {
        state.withLock { _ = $0.handles.removeValue(forKey: handle.key.processID) }
    }

    /// Cancels what the connection with this key runs; a wrong key does nothing, silently, as the protocol wants.
    func cancel(_ key: CancelKey) {
        let handle = state.withLock { $0.handles[key.processID] }
        if let handle, handle.key == key { handle.cancel() }
    }

    var count: Int { state.withLock { $0.handles.count } }

    /// Refuses new connections and ends those that are open.
    func terminateAll(_ error: SQLError) {
        let handles = state.withLock { state in
            state.isClosing = true
            return Array(state.handles.values)
        }
        for handle in handles { handle.terminate(error) }
    }

    func closeAll() {
        for handle in state.withLock({ Array($0.handles.values) }) { handle.close() }
    }
}
