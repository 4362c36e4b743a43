package import MillIO
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A server of a test: answers are what a closure makes of requests, or a list of them in order.
///
/// Threading: any thread; a closure is called by several at once when they are.
package final class ScriptedTransport: HTTPTransport {
    package typealias Answer = Result<HTTPResponse, IOFailure>

    private let answer: @Sendable (HTTPRequest) -> Answer
    private let sent = Mutex<[HTTPRequest]>([])

    package init(_ answer: @escaping @Sendable (HTTPRequest) -> Answer) { self.answer = answer }

    /// Answers in order; `EPROTO` when there are no more.
    package convenience init(_ answers: [Answer]) {
        let script = Script(answers)
        self.init { request in
            script.next() ?? .failure(IOFailure(request.method, path: request.place, errorNumber: EPROTO, detail: "the script has ended"))
        }
    }

    private final class Script: Sendable {
        private let left: Mutex<ArraySlice<Answer>>
        init(_ answers: [Answer]) { left = Mutex(answers[...]) }
        func next() -> Answer? { left.withLock { $0.popFirst() } }
    }

    /// All that were sent so far.
    package var requests: [HTTPRequest] { sent.withLock { $0 } }

    package func send(_ request: HTTPRequest, receiving buffer: UnsafeMutableRawBufferPointer?) throws(IOFailure) -> HTTPResponse {
        sent.withLock { $0.append(request) }
        var response = try answer(request).get()
        let bytesMax = response.isSuccess ? buffer?.count ?? request.responseBytesMax : .max
        guard response.body.count <= bytesMax else { throw IOFailure(request.method, path: request.place, errorNumber: EFBIG) }
        if let buffer, response.isSuccess {
            buffer.copyBytes(from: response.body)
            response.body = []
        }
        return response
    }
}
