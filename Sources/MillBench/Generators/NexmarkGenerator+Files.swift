package import MillIO

/// Nexmark's events as files of JSON lines, which other engines read too.
extension NexmarkGenerator {
    /// Writes `directory/{person,auction,bid}.jsonl`, or `directory/KIND/part-K.jsonl` for more than one part. An event's part is a
    /// hash of its number: each part is ordered by time, and all advance together as partitions would. Files that exist are replaced.
    package func writeFiles(to directory: String, parts: Int = 1, files: any FileSystem) throws(IOFailure) {
        let parts = max(parts, 1)
        var outputs: [Output] = []
        try files.createDirectory(directory)
        for kind in Kind.allCases {
            if parts > 1 { try files.createDirectory("\(directory)/\(kind.name)") }
            for part in 0..<parts {
                let path = parts > 1 ? "\(directory)/\(kind.name)/part-\(part).jsonl" : "\(directory)/\(kind.name).jsonl"
                outputs.append(Output(file: try files.open(path, .create)))
            }
        }
        for event in 0..<max(events, 0) {
            let part = parts > 1 ? Int(SeededRandom.mix(UInt64(event) ^ 0x7061_7274) % UInt64(parts)) : 0
            let output = outputs[kind(of: event).rawValue * parts + part]
            _ = write(event, to: output.writer)
            output.writer.put(byte: 10)
            if output.writer.count >= Output.flushBytes { try output.flush() }
        }
        for output in outputs { try output.flush() }
    }

    private final class Output {
        static let flushBytes = 1 << 20
        let writer = RecordWriter(capacity: flushBytes + recordBytesMax)
        private let file: any File
        private var position = 0

        init(file: any File) { self.file = file }

        func flush() throws(IOFailure) {
            try file.write(writer.bytes, at: position)
            position += writer.count
            writer.removeAll()
        }
    }
}
