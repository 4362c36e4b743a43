package import MillBase
package import MillIO
package import MillKafkaWire

/// What the log refuses, and why.
package enum LogError: Error, Hashable, Sendable, SQLErrorConvertible {
    case unknownTopic(String)
    case topicExists(String)
    case invalidTopicName(String)
    case invalidPartitionCount(Int)
    /// A read outside what the partition has; `end` is the offset after the last durable record.
    case offsetOutOfRange(requested: Int64, start: Int64, end: Int64)
    case invalidBatch(RecordError)
    case batchTooLarge(bytes: Int, limit: Int)
    /// An idempotent producer's sequence that neither follows its last one nor repeats one.
    case outOfOrderSequence(expected: Int32, found: Int32)
    /// A producer epoch older than one already seen.
    case staleProducerEpoch(current: Int16, found: Int16)
    /// A transactional batch of a producer that no transactional id has.
    case unknownProducer(Int64)
    /// A transactional batch outside its producer's transaction.
    case noTransaction(producerID: Int64)
    /// A topic setting that does not exist or does not take the value.
    case invalidConfig(name: String, reason: String)
    case storage(IOFailure)
    /// No memory to decompress a batch, which says nothing of the batch.
    case outOfMemory(RecordError)
    case noThread(ThreadFailure)
    /// A file that contradicts itself or its index; its partition is stopped.
    case corrupted(path: String, reason: String)
    /// A transaction whose rows do not fit a record of the DML log.
    case transactionTooLarge(bytes: Int, limit: Int)
    case closed

    package var sqlError: SQLError {
        switch self {
        case .unknownTopic(let name): SQLError(.undefinedObject, "topic \"\(name)\" does not exist")
        case .topicExists(let name): SQLError(.duplicateTable, "topic \"\(name)\" already exists")
        case .invalidTopicName(let name):
            SQLError(.invalidName, "\"\(name)\" is not a topic name", hint: "Use up to 249 letters, digits, dots, hyphens and underscores.")
        case .invalidPartitionCount(let count): SQLError(.invalidParameterValue, "a topic cannot have \(count) partitions")
        case .offsetOutOfRange(let requested, let start, let end):
            SQLError(.numericValueOutOfRange, "offset \(requested) is out of range", detail: "The partition holds \(start) up to \(end).")
        case .invalidBatch(let error): error.sqlError
        case .batchTooLarge(let bytes, let limit): SQLError(.programLimitExceeded, "a record batch of \(bytes) bytes is over the limit of \(limit)")
        case .outOfOrderSequence(let expected, let found): SQLError(.dataCorrupted, "producer sequence \(found) where \(expected) was expected")
        case .staleProducerEpoch(let current, let found): SQLError(.dataCorrupted, "producer epoch \(found) after \(current)")
        case .unknownProducer(let id): SQLError(.dataCorrupted, "producer \(id) has no transactional id")
        case .noTransaction(let id): SQLError(.dataCorrupted, "producer \(id) has no transaction under way in this partition")
        case .invalidConfig(let name, let reason): SQLError(.invalidParameterValue, "topic setting \"\(name)\" \(reason)")
        case .storage(let failure): failure.sqlError
        case .outOfMemory(let error): error.sqlError
        case .noThread(let failure): failure.sqlError
        case .corrupted(let path, let reason):
            SQLError(
                .dataCorrupted, "\"\(path)\" is damaged: \(reason)",
                hint: "Restore the data directory from a copy; docs/operating.md says how to go on without what is damaged.")
        case .transactionTooLarge(let bytes, let limit):
            SQLError(
                .programLimitExceeded, "a transaction that changes \(bytes) bytes of rows is over the limit of \(limit)",
                hint: "Write the rows in several transactions.")
        case .closed: SQLError(.adminShutdown, "the log is closed")
        }
    }

    /// What is said of a batch that somebody brings.
    package init(_ error: RecordError) {
        if case .outOfMemory = error { self = .outOfMemory(error) } else { self = .invalidBatch(error) }
    }

    /// What is said of a batch that the log has.
    init(reading error: RecordError, of path: String) {
        if case .outOfMemory = error { self = .outOfMemory(error) } else { self = .corrupted(path: path, reason: error.sqlError.message) }
    }
}
