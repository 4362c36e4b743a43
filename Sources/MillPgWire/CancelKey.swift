/// What a client shows, on a connection of its own, to cancel what another connection runs.
package struct CancelKey: Hashable, Sendable {
    package var processID: Int32
    package var secret: Int32

    package init(processID: Int32, secret: Int32) {
        self.processID = processID
        self.secret = secret
    }
}
