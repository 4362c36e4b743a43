import Testing

@testable import MillIceberg

@Suite struct MetadataModelTests {
    private func value(_ text: String) throws -> JSONValue { try JSONValue(Array(text.utf8)) }

    // MARK: JSON

    @Test func wholeNumbersStayWhatTheyAre() throws {
        #expect(try value("9223372036854775807").int64 == .max)
        #expect(try value("-9223372036854775808").int64 == .min)
        #expect(try value("3055729675574597004").text == "3055729675574597004")
        #expect(try value("9007199254740993").text == "9007199254740993")
        #expect(try value("1.5e3") == .double(1500))
        #expect(try value("99999999999").int == nil)
    }

    @Test func textsAreReadAsTheyAreMeant() throws {
        #expect(try value(#""a\n\u00e9\ud83d\ude00\/\"""#).string == "a\né😀/\"")
        #expect(try value(" { \"a\" : [ true , null , {} ] } ") == ["a": [true, .null, [:]]])
        let back = try JSONValue(Array(JSONValue.string("a\u{1}\"\\é\u{2028}").text.utf8))
        #expect(back.string == "a\u{1}\"\\é\u{2028}")
    }

    @Test func whatIsNotJSONIsAnErrorWithItsPlace() {
        for text in [
            "", "{", "[1,]", "{\"a\"}", "{\"a\":1,}", "tru", "\"", "\"\\x\"", "\"\\ud800\"", "\"\\ud800\\u0041\"", "1 2", "+1", ".5", "1.",
            "--1", "\"\n\"",
            String(repeating: "[", count: 100_000), "nan", "1e999",
        ] {
            #expect(throws: BadBytes.self, "\(text.prefix(20))") { try value(text) }
        }
        #expect(throws: BadBytes.self) { try JSONValue([0x22, 0xFF, 0x22]) }
    }

    // MARK: Updates and requirements

    @Test func updatesAndRequirementsAreReadAsTheyAreWritten() throws {
        let schema = IcebergSchema(
            schemaID: 1,
            [
                NestedField(1, "id", .long, isRequired: true),
                NestedField(
                    2, "m",
                    .map(
                        key: NestedField(3, "key", .string, isRequired: true),
                        value: NestedField(4, "value", .decimal(precision: 9, scale: 2)))),
            ])
        let snapshot = Snapshot(
            id: 5, parentID: 4, sequenceNumber: 2, timestampMillis: 9, manifestList: "l", summary: [("operation", "append")], schemaID: 1)
        var reference = SnapshotReference(branch: 5)
        reference.maxRefAgeMillis = 7
        let updates: [TableUpdate] = [
            .assignUUID("u"), .upgradeFormatVersion(2), .addSchema(schema), .setCurrentSchema(-1),
            .addPartitionSpec(PartitionSpec(specID: 1, [PartitionField(sourceID: 1, fieldID: 1000, name: "b", .bucket(4))])),
            .setDefaultSpec(-1),
            .addSortOrder(SortOrder(orderID: 1, [SortField(sourceID: 1)])), .setDefaultSortOrder(-1), .addSnapshot(snapshot),
            .setSnapshotRef(name: "main", reference), .removeSnapshots([1, 2]), .removeSnapshotRef("old"), .setLocation("file:///x"),
            .setProperties(["a": "b"]), .removeProperties(["c"]), .removeStatistics(snapshotID: 5), .removePartitionSpecs([0]),
            .removeSchemas([0]),
            .setStatistics(snapshotID: 5, ["snapshot-id": 5, "statistics-path": "p"]),
            .setPartitionStatistics(snapshotID: 5, ["snapshot-id": 5, "statistics-path": "p"]), .removePartitionStatistics(snapshotID: 5),
        ]
        for update in updates { #expect(try TableUpdate(value(update.json.text)) == update) }
        let requirements: [TableRequirement] = [
            .assertCreate, .assertTableUUID("u"), .assertRefSnapshotID(ref: "main", snapshotID: nil),
            .assertRefSnapshotID(ref: "main", snapshotID: 5),
            .assertLastAssignedFieldID(4), .assertCurrentSchemaID(0), .assertLastAssignedPartitionID(999), .assertDefaultSpecID(0),
            .assertDefaultSortOrderID(0),
        ]
        for requirement in requirements { #expect(try TableRequirement(value(requirement.json.text)) == requirement) }
    }

    @Test func metadataIsReadAsItIsWrittenInEveryFormat() throws {
        for version in 1...3 {
            let schema = IcebergSchema([NestedField(1, "id", .long, isRequired: true)])
            var table = TableMetadata(formatVersion: version, tableUUID: "u", location: "file:///t", schema: schema, nowMillis: 7)
            let snapshot = Snapshot(
                id: .max, parentID: nil, sequenceNumber: 1, timestampMillis: 8, manifestList: "l", summary: [("operation", "append")],
                schemaID: 0,
                firstRowID: version == 3 ? 0 : nil, addedRows: version == 3 ? 10 : nil)
            table = try table.applying([.addSnapshot(snapshot), .setSnapshotRef(name: "main", SnapshotReference(branch: .max))])
            #expect(try TableMetadata(Array(table.json.text.utf8), location: "x") == table)
            #expect(table.nextRowID == (version == 3 ? 10 : 0))
        }
    }

    @Test func numbersFromWhichOthersCountOnAreBounded() throws {
        let table = TableMetadata(tableUUID: "u", location: "file:///t", schema: IcebergSchema([NestedField(1, "id", .long)]), nowMillis: 7)
        for key in ["last-sequence-number", "last-updated-ms", "next-row-id"] {
            for bad in [Int64.max, -1] {
                #expect(throws: BadBytes.self, "\(key) \(bad)") { try TableMetadata(table.json.with(key, .int(bad))) }
            }
        }
        let snapshot: JSONValue = ["snapshot-id": 1, "timestamp-ms": 5, "sequence-number": 1]
        #expect(try Snapshot(snapshot).sequenceNumber == 1)
        for key in ["timestamp-ms", "sequence-number", "first-row-id", "added-rows"] {
            #expect(throws: BadBytes.self) { try Snapshot(snapshot.with(key, .int(.max))) }
        }
        let reference = try SnapshotReference(["snapshot-id": 1, "type": "tag", "max-ref-age-ms": .int(.max), "max-snapshot-age-ms": .int(.min)])
        #expect(reference.maxRefAgeMillis == 1 << 60 && reference.maxSnapshotAgeMillis == 0)
    }

    @Test func sourcesOfPartitionsMustFit() throws {
        let schema = IcebergSchema([NestedField(1, "name", .string)])
        let table = TableMetadata(tableUUID: "u", location: "file:///t", schema: schema, nowMillis: 7)
        let spec = PartitionSpec(specID: 1, [PartitionField(sourceID: 1, fieldID: 1000, name: "d", .day)])
        #expect(throws: IcebergError.self) { try table.applying([.addPartitionSpec(spec), .setDefaultSpec(-1)]) }
    }
}
