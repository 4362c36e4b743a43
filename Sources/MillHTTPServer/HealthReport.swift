package import MillBase

/// How the process is, as `/health` and `/metrics` tell it.
package struct HealthReport: Sendable {
    package enum State: String, Sendable {
        /// What an earlier process left is being taken up.
        case starting
        case serving
        /// Reads are answered; nothing can be written, for `reason`.
        case refusingWrites = "refusing writes"
        case stopping
    }

    /// A materialized view, or a sink.
    package struct Job: Sendable {
        package var id: ObjectID
        package var name: String
        /// As in SHOW JOBS, or SHOW SINKS.
        package var state: String
        package var reason: String?
        /// Since when it does not get on, and when it is tried again; microseconds since 1970.
        package var sinceMicros: Int64?
        package var nextTryMicros: Int64?

        package init(
            id: ObjectID, name: String, state: String, reason: String? = nil, sinceMicros: Int64? = nil, nextTryMicros: Int64? = nil
        ) {
            self.id = id
            self.name = name
            self.state = state
            self.reason = reason
            self.sinceMicros = sinceMicros
            self.nextTryMicros = nextTryMicros
        }
    }

    package var state: State
    package var reason: String?
    package var jobs: [Job]
    package var sinks: [Job]
    package var metrics: [MetricFamily]
    /// Where the embedded table catalog answers; nil when it is off.
    package var catalogAddress: String?

    package init(state: State, reason: String? = nil, jobs: [Job] = [], sinks: [Job] = [], metrics: [MetricFamily] = []) {
        self.state = state
        self.reason = reason
        self.jobs = jobs
        self.sinks = sinks
        self.metrics = metrics
    }

    /// What clients are sent to the server for can be done.
    package var isReady: Bool { state == .serving }

    /// `{"live":true,"ready":...,"state":...,"reason":...,"jobs":[...],"sinks":[...]}`; times in microseconds since 1970.
    var json: String {
        var text = JSONText()
        text.object { text in
            text.field("live") { $0.value(true) }
            text.field("ready") { $0.value(isReady) }
            text.field("state") { $0.value(state.rawValue) }
            text.field("reason") { $0.value(reason) }
            if let catalogAddress { text.field("catalog") { $0.value(catalogAddress) } }
            for (name, jobs) in [("jobs", jobs), ("sinks", sinks)] {
                text.field(name) { text in
                    text.array(jobs) { text, job in
                        text.object { text in
                            text.field("id") { $0.value(Int64(job.id.number)) }
                            text.field("name") { $0.value(job.name) }
                            text.field("state") { $0.value(job.state) }
                            text.field("reason") { $0.value(job.reason) }
                            text.field("since_micros") { $0.value(job.sinceMicros) }
                            text.field("next_try_micros") { $0.value(job.nextTryMicros) }
                        }
                    }
                }
            }
        }
        return text.text
    }
}

/// Whoever knows how the process is. Asked at any time, also before there is an engine.
package protocol HealthReporter: Sendable {
    func healthReport() async -> HealthReport
}
