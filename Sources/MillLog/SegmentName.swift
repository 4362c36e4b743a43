import MillIO

/// A segment's files by name: `BASE.log`, or `BASE-GENERATION.log` once compaction has written it anew.
struct SegmentName: Hashable {
    var baseOffset: Int64
    var generation: Int

    var text: String { Segment.name(baseOffset, generation: generation) }

    /// The segments that hold in a partition's directory, ascending, after the others' files were removed: what compaction has replaced or
    /// did not finish, and what lies wholly below `start`.
    static func surviving(in directory: String, _ files: any FileSystem, from start: Int64) throws(IOFailure) -> [SegmentName] {
        var found: [SegmentName] = []
        var indexes: Set<SegmentName> = []
        for name in try files.list(directory) {
            // Something that was to take another's place, when the process ended.
            if name.hasSuffix(".new") { try files.remove(directory + "/" + name) }
            if name.hasSuffix(".log"), let parsed = Segment.parse(name.dropLast(4)) {
                found.append(SegmentName(baseOffset: parsed.baseOffset, generation: parsed.generation))
            } else if name.hasSuffix(".index"), let parsed = Segment.parse(name.dropLast(6)) {
                indexes.insert(SegmentName(baseOffset: parsed.baseOffset, generation: parsed.generation))
            }
        }
        var dead = Array(indexes.subtracting(found))
        found.sort { ($0.baseOffset, -$0.generation) < ($1.baseOffset, -$1.generation) }
        var kept: [SegmentName] = []
        // Up to where the last one that compaction wrote reaches, and in which generation.
        var (coveredTo, coveredBy) = (Int64(-1), 0)
        for (place, name) in found.enumerated() {
            let isReplaced = kept.last?.baseOffset == name.baseOffset || name.baseOffset < coveredTo && name.generation < coveredBy
            var isUnfinished = false
            if !isReplaced, name.generation > 0 {
                let end = try endOffset(of: name, in: directory, files)
                // What it replaces is there as long as it may be unfinished; alone, it is what there is.
                isUnfinished = end == nil && place + 1 < found.count && found[place + 1].baseOffset == name.baseOffset
                if let end { (coveredTo, coveredBy) = (end, name.generation) }
            }
            if isReplaced || isUnfinished { dead.append(name) } else { kept.append(name) }
        }
        while kept.count > 1, kept[1].baseOffset <= start { dead.append(kept.removeFirst()) }
        for name in dead {
            try files.remove(directory + "/" + name.text + ".index")
            try files.remove(directory + "/" + name.text + ".log")
        }
        if !dead.isEmpty { try files.syncDirectory(directory) }
        return kept
    }

    /// Where the segment ends by its index; nil when that, or the segment, is not whole.
    private static func endOffset(of name: SegmentName, in directory: String, _ files: any FileSystem) throws(IOFailure) -> Int64? {
        let path = directory + "/" + name.text
        guard files.exists(path + ".index") else { return nil }
        let segment = Segment(
            baseOffset: name.baseOffset, generation: name.generation, file: try files.open(path + ".log", .read), indexPath: path + ".index"
        )
        guard segment.restore(fromIndex: try files.open(path + ".index", .read).readAll()) != nil, segment.size == (try segment.file.size())
        else { return nil }
        return segment.nextOffset
    }
}
