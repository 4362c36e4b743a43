import MillColumnar
import MillTestKit
import Testing

@testable import MillIceberg

@Suite struct ScanTests {
    /// A condition keeps every row that matches, and passes over some files.
    @Test(arguments: 1...4) func pruningLosesNoRow(seed: UInt64) throws {
        var sample = try SampleTable("prune", seed: seed, spec: seed % 3 == 0 ? PartitionSpec() : SampleTable.spec)
        for _ in 0..<3 { try sample.append(sample.random.number(1...40)) }
        if seed % 2 == 0 { try sample.delete(oneIn: 4) }
        for (index, field) in SampleTable.fields.enumerated() where sample.random.oneIn(2) {
            let values = sample.rows.values.map { $0[index] }.filter { !$0.isNull }
            guard let one = values.first, let other = values.last else { continue }
            let ordered = ScanPruningTestOrder.isAtOrBelow(one, other) ? (one, other) : (other, one)
            let kinds: [ScanCondition.Kind] = [
                .between(one, one), .between(ordered.0, ordered.1), .between(nil, one), .between(one, nil), .isNull, .isNotNull,
            ]
            for kind in kinds {
                let wanted = sample.rows.values.filter { row in ScanPruningTestOrder.matches(row[index], kind) }
                let found = Set(SampleTable.sorted(try sample.scanned(where: [ScanCondition(field.id, kind)])))
                for row in SampleTable.sorted(Array(wanted)) { #expect(found.contains(row), "\(field.name) \(kind)") }
            }
        }
    }

    @Test func partitionsThatCannotMatchAreNotRead() throws {
        var sample = try SampleTable("partitions", seed: 2, spec: SampleTable.spec)
        try sample.append(2000)
        let plan = try ScanPlan(sample.table, where: [ScanCondition(9, .between(.int(18_000), .int(18_010)))])
        let all = try ScanPlan(sample.table)
        #expect(plan.tasks.count < all.tasks.count / 2)
        #expect(plan.filesPassedOver == all.tasks.count - plan.tasks.count)
    }

    @Test func olderStatesAreRead() throws {
        var sample = try SampleTable("history", seed: 3)
        try sample.append(10)
        try sample.append(20)
        let (first, second) = (sample.table.metadata.snapshots[0], sample.table.metadata.snapshots[1])
        #expect(try sample.scanned(.snapshot(first.id)).count == 10)
        #expect(try sample.scanned(.reference("main")).count == 30)
        #expect(try sample.scanned(.asOf(millis: second.timestampMillis)).count == 30)
        #expect(throws: IcebergError.missing("snapshot 1 of the table, which may have expired")) { try sample.scanned(.snapshot(1)) }
        #expect(throws: IcebergError.missing("branch or tag \"x\" of the table")) { try sample.scanned(.reference("x")) }
        #expect(throws: IcebergError.missing("snapshot of the table as old as that")) { try sample.scanned(.asOf(millis: 1)) }
    }

    @Test func columnsAreKnownByTheirIdentifiers() throws {
        var sample = try SampleTable(
            "evolved", seed: 4,
            fields: [NestedField(1, "id", .int, isRequired: true), NestedField(2, "a", .float), NestedField(3, "b", .string)])
        try sample.append(50)
        try sample.catalog.change(&sample.table) { metadata in
            var added = NestedField(4, "b", .string)
            added.initialDefault = "new"
            metadata.schemas.append(
                IcebergSchema(
                    schemaID: 1,
                    [NestedField(2, "renamed", .double), NestedField(1, "id", .long, isRequired: true), added, NestedField(5, "c", .date)]))
            metadata.currentSchemaID = 1
        }
        let expected = sample.rows.values.map { row in [row[1], row[0], .string("new"), .null] }
        #expect(SampleTable.sorted(try sample.scanned()) == SampleTable.sorted(expected))
        #expect(SampleTable.sorted(try sample.scanned(.snapshot(sample.table.metadata.snapshots[0].id))) == sample.expected)
    }
}

enum ScanPruningTestOrder {
    static func isAtOrBelow(_ a: Scalar, _ b: Scalar) -> Bool {
        // SQL's order: NaN above all numbers.
        if case .float(let a) = a, case .float(let b) = b { return b.isNaN || a <= b }
        return ScalarOrder.compare(a, b) <= 0
    }

    static func matches(_ value: Scalar, _ kind: ScanCondition.Kind) -> Bool {
        switch kind {
        case .isNull: value.isNull
        case .isNotNull: !value.isNull
        case .between(let lower, let upper):
            !value.isNull && (lower.map { isAtOrBelow($0, value) } ?? true) && (upper.map { isAtOrBelow(value, $0) } ?? true)
        }
    }
}
