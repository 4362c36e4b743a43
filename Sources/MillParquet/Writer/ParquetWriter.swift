package import MillColumnar
package import MillIO

/// Writes one Parquet file from batches of columns.
///
/// Fed by the file sinks, a batch at a time; what it has written is a file from `finish` on, never before: the footer comes last, and
/// the caller syncs, renames or uploads. A row group is kept in memory compressed until it ends. Weights are the caller's matter.
///
/// ```
/// PAR1 | row group: column chunk: [dictionary page] data page ... | ... | column indexes | offset indexes | footer | its length | PAR1
/// ```
///
/// A batch with a value that a column cannot hold is refused as a whole, and the file goes on as if it had not been handed over.
/// After an error of the file itself the writer is of no use, and so is the file: whatever is asked of it fails in the same way.
///
/// Threading: one thread at a time. Source: apache/parquet-format; our choices are in docs/internals/parquet.md.
package final class ParquetWriter {
    private let file: any File
    private let options: ParquetWriterOptions
    private let columns: [WrittenColumn]
    /// Of all columns.
    private let leaves: [ColumnChunkWriter]
    private let compressor: PageCompressor

    /// Where the next bytes go: what a reader will find before.
    package private(set) var fileByteCount = 0
    package private(set) var rowCount: Int64 = 0
    private var groupRowCount = 0
    /// What went wrong with the file: a footer behind what was written of it would make it look whole.
    private var failure: ParquetError?
    private var groups: [RowGroupMetadata] = []
    private var columnIndexes: [[ColumnIndex?]] = []
    private var offsetIndexes: [[OffsetIndex]] = []

    private static let magic: [UInt8] = Array("PAR1".utf8)

    /// Begins an empty file.
    /// - Throws: `badRequest` for columns or options that make no sense, `io` when nothing can be written.
    package init(_ file: any File, _ columns: [ParquetColumn], _ options: ParquetWriterOptions = ParquetWriterOptions())
        throws(ParquetError)
    {
        guard !columns.isEmpty else { throw .badRequest("a Parquet file needs a column") }
        guard Set(columns.map(\.name)).count == columns.count else { throw .badRequest("two columns of a Parquet file have the same name") }
        guard options.rowGroupRowsMax > 0, options.pageRowsMax > 0, options.pageBytesMax > 0, options.boundBytesMax > 3 else {
            throw .badRequest("a limit of a Parquet file is not positive")
        }
        let unconstrained = options.unconstrainedNumeric
        guard (1...38).contains(unconstrained.precision), (0...unconstrained.precision).contains(unconstrained.scale) else {
            throw .badRequest("numeric(\(unconstrained.precision),\(unconstrained.scale)) is not a type")
        }
        self.file = file
        self.options = options
        let compressor = try PageCompressor(options.compression)
        self.compressor = compressor
        var written: [WrittenColumn] = []
        for column in columns { written.append(try WrittenColumn(column, options, compressor)) }
        self.columns = written
        leaves = written.flatMap(\.leaves)
        try write(Self.magic)
    }

    /// Bytes that the file would have if it ended here, but for the footer.
    package var byteCount: Int { fileByteCount + leaves.reduce(0) { $0 + $1.byteCount } }

    /// Appends rows: a column of the batch for each of the file, of its type.
    package func append(_ batch: [Column], count: Int) throws(ParquetError) {
        if let failure { throw failure }
        guard batch.count == columns.count else {
            throw .badRequest("a batch has \(batch.count) columns, the Parquet file has \(columns.count)")
        }
        guard count > 0 else { return }
        for (writer, source) in zip(columns, batch) {
            guard source.count >= count, source.type.physical == writer.column.type.physical else {
                throw .badRequest(
                    "column \"\(writer.column.name)\" is \(writer.column.type.name) in the Parquet file and \(source.type.name) in a batch")
            }
            try writer.prepare(source, count)
        }
        for (writer, source) in zip(columns, batch) { writer.append(source, count) }
        rowCount += Int64(count)
        groupRowCount += count
        if groupRowCount >= options.rowGroupRowsMax || leaves.reduce(0, { $0 + $1.byteCount }) >= options.rowGroupBytesMax {
            try endRowGroup()
        }
    }

    private func endRowGroup() throws(ParquetError) {
        guard groupRowCount > 0 else { return }
        let start = fileByteCount
        var chunks: [ColumnChunkMetadata] = []
        var columnIndexes: [ColumnIndex?] = []
        var offsetIndexes: [OffsetIndex] = []
        for column in leaves {
            let chunk = column.finish()
            let metadata = chunk.metadata(of: column, at: Int64(fileByteCount), compressor.codec, boundBytesMax: options.boundBytesMax)
            chunks.append(metadata)
            columnIndexes.append(chunk.columnIndex(boundBytesMax: options.boundBytesMax))
            offsetIndexes.append(chunk.offsetIndex(firstPageAt: metadata.dataPageOffset))
            try write(chunk.dictionaryPage.bytes)
            try write(chunk.pages.bytes)
        }
        groups.append(
            RowGroupMetadata(
                columns: chunks, byteCount: chunks.reduce(0) { $0 + $1.uncompressedByteCount }, rowCount: Int64(groupRowCount),
                fileOffset: Int64(start),
                compressedByteCount: Int64(fileByteCount - start), ordinal: Int16(exactly: groups.count)))
        self.columnIndexes.append(columnIndexes)
        self.offsetIndexes.append(offsetIndexes)
        groupRowCount = 0
    }

    /// Writes what is left, the indexes and the footer. Nothing may be appended afterwards.
    /// - Returns: the footer, as a reader will find it.
    @discardableResult
    package func finish() throws(ParquetError) -> FileMetadata {
        if let failure { throw failure }
        try endRowGroup()
        let out = OutputBytes()
        for (group, indexes) in columnIndexes.enumerated() {
            for (column, index) in indexes.enumerated() {
                guard let index else { continue }
                groups[group].columns[column].columnIndex = range(out) { index.write(to: $0) }
            }
        }
        for (group, indexes) in offsetIndexes.enumerated() {
            for (column, index) in indexes.enumerated() { groups[group].columns[column].offsetIndex = range(out) { index.write(to: $0) } }
        }
        let schema = [SchemaElement(name: "schema", childCount: columns.count)] + columns.flatMap(\.elements)
        let footer = FileMetadata(
            version: options.usesOldEncodingsOnly ? 1 : 2, schema: schema, rowCount: rowCount, rowGroups: groups,
            keyValues: options.keyValues,
            createdBy: options.createdBy, orders: leaves.map { _ in true })
        let start = out.count
        footer.write(to: out)
        out.appendLittleEndian(UInt32(out.count - start))
        out.append(Self.magic)
        try write(out.bytes)
        return footer
    }

    /// Where what `body` appends will lie in the file.
    private func range(_ out: OutputBytes, _ body: (OutputBytes) -> Void) -> FileRange {
        let start = out.count
        body(out)
        return FileRange(offset: Int64(fileByteCount + start), length: Int32(out.count - start))
    }

    private func write(_ bytes: [UInt8]) throws(ParquetError) {
        let out = OutputBytes()
        out.append(bytes)
        try write(out.bytes)
    }

    private func write(_ bytes: UnsafeRawBufferPointer) throws(ParquetError) {
        guard bytes.count > 0 else { return }
        do throws(IOFailure) { try file.write(bytes, at: fileByteCount) } catch {
            failure = .io(error)
            throw .io(error)
        }
        fileByteCount += bytes.count
    }
}
