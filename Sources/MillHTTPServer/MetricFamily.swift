/// Samples of one name, in Prometheus's text exposition format 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats/).
///
/// Names follow https://prometheus.io/docs/practices/naming/: a prefix, base units, `_total` at the end of counters.
package struct MetricFamily: Sendable {
    package enum Kind: String, Sendable {
        /// Only grows while the process lives.
        case counter
        case gauge
    }

    package struct Sample: Sendable {
        package var labels: [(name: String, value: String)]
        package var value: Double
    }

    package var name: String
    package var help: String
    package var kind: Kind
    package var samples: [Sample]

    package init(_ name: String, _ kind: Kind, _ help: String, _ samples: [Sample]) {
        self.name = name
        self.help = help
        self.kind = kind
        self.samples = samples
    }

    /// One sample without labels.
    package init(_ name: String, _ kind: Kind, _ help: String, _ value: Double) {
        self.init(name, kind, help, [Sample(labels: [], value: value)])
    }

    /// One sample per value of a label.
    package init(_ name: String, _ kind: Kind, _ help: String, by label: String, _ values: [(String, Double)]) {
        self.init(name, kind, help, values.map { Sample(labels: [(label, $0.0)], value: $0.1) })
    }

    static func text(_ families: [MetricFamily]) -> String { families.map(\.text).joined() }

    /// Its lines; none without a sample.
    private var text: String {
        guard !samples.isEmpty else { return "" }
        let lines = samples.map { sample in
            let labels = sample.labels.map { "\($0.name)=\"\(Self.escaped($0.value))\"" }.joined(separator: ",")
            return "\(name)\(labels.isEmpty ? "" : "{\(labels)}") \(Self.number(sample.value))\n"
        }
        return "# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n" + lines.joined()
    }

    private static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        return Int64(exactly: value).map(String.init) ?? "\(value)"
    }

    /// A label's value: backslash, quote and line feed are escaped.
    private static func escaped(_ value: String) -> String {
        var text = ""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\\": text += "\\\\"
            case "\"": text += "\\\""
            case "\n": text += "\\n"
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text
    }
}
