import MillColumnar

/// Goes through the entries of one leaf: each a value, or a level that says at which node of the path there is none.
final class LeafCursor {
    let leaf: SchemaLeaf
    private let reader: ColumnReader
    private let repetitions = UnsafeMutablePointer<UInt32>.allocate(capacity: ColumnReader.partRows)
    private let definitions = UnsafeMutablePointer<UInt32>.allocate(capacity: ColumnReader.partRows)
    /// The values among the entries at hand.
    private(set) var values: Column
    /// Of the entry's value, when it has one.
    private(set) var valueIndex = 0
    private var index = 0
    private var count = 0
    private var left: Int

    init(_ leaf: SchemaLeaf, _ reader: ColumnReader, entryCount: Int) {
        (self.leaf, self.reader) = (leaf, reader)
        left = entryCount
        values = Column(reader.meaning.type, capacity: 0)
    }

    deinit {
        repetitions.deallocate()
        definitions.deallocate()
    }

    var isAtEnd: Bool { index == count && left == 0 }

    /// The repetition level of the entry at hand: 0 begins a row, and comes after the last entry as well.
    func repetition() throws(ParquetError) -> Int {
        if index == count {
            if left == 0 { return 0 }
            try fill()
        }
        return Int(repetitions[index])
    }

    func definition() throws(ParquetError) -> Int {
        if index == count { try fill() }
        return Int(definitions[index])
    }

    /// Goes on to the next entry.
    func advance() throws(ParquetError) {
        if index == count { try fill() }
        if definitions[index] == UInt32(leaf.definitionMax) { valueIndex += 1 }
        index += 1
    }

    func malformed(_ reason: Malformed) -> ParquetError { reader.located(reason) }

    func unsupported(_ feature: String) -> ParquetError { reader.unsupported(feature) }

    private func fill() throws(ParquetError) {
        guard left > 0 else { throw malformed(.cutShort) }
        (values, count) = try reader.readEntries(repetitions, definitions)
        left -= count
        (index, valueIndex) = (0, 0)
    }
}

extension ColumnReader {
    /// Some entries: their levels, at most `partRows`, and the values that are there as a column without NULLs.
    fileprivate func readEntries(
        _ repetitions: UnsafeMutablePointer<UInt32>, _ definitions: UnsafeMutablePointer<UInt32>
    ) throws(ParquetError) -> (values: Column, count: Int) {
        try locating { () throws(ChunkFailure) in
            try openPage()
            do throws(Malformed) {
                guard let opened = page else { throw .cutShort }
                let count = min(pageEnd - row, Self.partRows)
                repetitions.update(repeating: 0, count: count)
                definitions.update(repeating: 0, count: count)
                try page?.repetitions?.decode(count, into: repetitions)
                try page?.definitions?.decode(count, into: definitions)
                // Levels have the bits that the largest needs, and there may be room in these for larger ones.
                let (wanted, repeated) = (UInt32(leaf.definitionMax), UInt32(leaf.repetitionMax))
                var (present, isBeyond) = (0, false)
                for index in 0..<count {
                    present &+= definitions[index] == wanted ? 1 : 0
                    isBeyond = isBeyond || definitions[index] > wanted || repetitions[index] > repeated
                }
                guard !isBeyond else { throw .badPage("a level of it is larger than its column has") }
                let values = Column(meaning.type, uninitialized: present)
                if present > 0 { try decode(opened, present, into: values.data) }
                if meaning.type.physical == .string { values.keep(opened.isConverted ? dictionary?.heaps ?? [] : opened.heaps) }
                row += count
                return (values, count)
            } catch { throw .malformed(error) }
        }
    }
}
