import NIOHTTP1

/// A response, whole.
struct HTTPAnswer: Sendable, Equatable {
    var status: HTTPResponseStatus
    var contentType = "text/plain; charset=utf-8"
    var body: String
    /// Methods that would do, for 405.
    var allow: String?

    static func refused(_ status: HTTPResponseStatus) -> HTTPAnswer { HTTPAnswer(status: status, body: "\(status.code) \(status.reasonPhrase)\n") }
}

/// What a request asks for.
enum HTTPRoute: Equatable {
    case health
    case metrics
    case refused(HTTPAnswer)

    /// - Parameter target: as the request line has it; what follows a `?` changes nothing.
    init(_ method: HTTPMethod, _ target: String) {
        let path = target.prefix { $0 != "?" && $0 != "#" }
        switch path {
        case "/health": self = .health
        case "/metrics": self = .metrics
        default:
            self = .refused(.refused(.notFound))
            return
        }
        guard method == .GET || method == .HEAD else {
            var answer = HTTPAnswer.refused(.methodNotAllowed)
            answer.allow = "GET, HEAD"
            self = .refused(answer)
            return
        }
    }

    func answer(_ report: HealthReport) -> HTTPAnswer {
        switch self {
        case .health: HTTPAnswer(status: report.isReady ? .ok : .serviceUnavailable, contentType: "application/json", body: report.json + "\n")
        case .metrics: HTTPAnswer(status: .ok, contentType: "text/plain; version=0.0.4; charset=utf-8", body: MetricFamily.text(report.metrics))
        case .refused(let answer): answer
        }
    }
}
