import MillBase
import MillColumnar
import MillExpr
import MillPlan
import MillTestKit
import Testing

@testable import MillDataflow

/// What a sum of numerics gives at the edges of 38 digits, and how many digits it shows.
@Suite struct DecimalSumTests {
    private let errors = OperatorErrors()
    private let most = Decimal.powerOfTen(38) - 1

    /// Sums one group over several epochs; returns the text after each, "NULL" for none.
    private func sums(_ epochs: [[(Decimal, Int64)]], _ function: AggregateFunction = .sum, distinct: Bool = false) throws -> [String] {
        let schema = [Field("v", .numeric)]
        let call = AggregateCall(function, argument: .column(0, .numeric), distinct: distinct, type: .numeric)
        let operation = try HashAggregateOperator(keys: [], calls: [call], input: schema, isAppendOnly: false, ownsGlobalGroup: true)
        operation.begin()
        var texts: [String] = []
        for epoch in epochs {
            let changes = epoch.map { (row: [Scalar.decimal($0.0)], weight: $0.1) }
            operation.push(RandomRelation.batch(changes[...], schema), input: 0, errors: errors)
            operation.closeEpoch(errors: errors)
            var last = texts.last ?? "none"
            while let batch = operation.next(errors: errors) {
                for row in 0..<batch.count where batch.weight(row) > 0 { last = batch.columns[0].text(row) ?? "NULL" }
            }
            texts.append(last)
        }
        return texts
    }

    private func decimal(_ unscaled: Int128, _ scale: Int32 = 0) -> Decimal { Decimal(unscaled: unscaled, scale: scale) }

    @Test func theScaleIsThatOfTheValuesPresent() throws {
        let epochs: [[(Decimal, Int64)]] = [
            [(decimal(1), 1), (decimal(110, 2), 1)], [(decimal(110, 2), -1)], [(decimal(5, 1), 2), (decimal(7), 1)], [(decimal(5, 1), -2)],
            [(decimal(1), -1), (decimal(7), -1)], [(decimal(3, 3), 1)],
        ]
        #expect(try sums(epochs) == ["2.10", "1", "9.0", "8", "NULL", "0.003"])
    }

    @Test func valuesOfAnySizeAndScaleMeetWithoutWrappingAround() throws {
        let large: [(Decimal, Int64)] = [(decimal(most), 1), (decimal(most, 38), 1)]
        // 99999999999999999999999999999999999999 + 0.99..., rounded off behind the point, has 39 digits.
        #expect(try sums([large, [(decimal(most), -1)]]) == ["NULL", "0." + String(repeating: "9", count: 38)])
        #expect(errors.entries.isEmpty)
        #expect(try sums([[(decimal(most), 3), (decimal(1, 38), 1)], [(decimal(most), -2)]]).last == String(repeating: "9", count: 38))
        #expect(try sums([[(decimal(most), .max)], [(decimal(most), 1 - .max)]]).last == String(repeating: "9", count: 38))
        #expect(try sums([[(decimal(-most), .max), (decimal(most, 38), 1)], [(decimal(-most), -.max)]]).last == "0." + String(repeating: "9", count: 38))
        #expect(try sums([[(decimal(-15, 1), 1), (decimal(most / 10), 1)]]) == [String(repeating: "9", count: 36) + "7.5"])
    }

    @Test func aSumOfMoreThan38DigitsIsAnErrorThatGoesAgain() throws {
        #expect(try sums([[(decimal(most), 1)], [(decimal(1), 1)]]) == [String(repeating: "9", count: 38), "NULL"])
        let entry = try #require(errors.entries.first?.key)
        #expect(entry.sqlState == .numericValueOutOfRange && entry.message == "value overflows numeric format")
        let more: [[(Decimal, Int64)]] = [[(decimal(most), 2)], [(decimal(most), -1)]]
        #expect(try sums(more) == ["NULL", String(repeating: "9", count: 38)])
    }

    @Test func digitsBehindThePointAreRoundedOffToFit() throws {
        #expect(try sums([[(decimal(most), 1), (decimal(4, 1), 1)]]) == [String(repeating: "9", count: 38)])
        #expect(try sums([[(decimal(-most), 1), (decimal(-4, 1), 1)]]) == ["-" + String(repeating: "9", count: 38)])
        #expect(try sums([[(decimal(most, 1), 1), (decimal(1, 1), 1)]]) == ["1" + String(repeating: "0", count: 37)])
    }

    @Test func distinctTakesBackTheFormThatItCounted() throws {
        #expect(try sums([[(decimal(10, 1), 1)], [(decimal(100, 2), 1)], [(decimal(10, 1), -1)], [(decimal(100, 2), -1)]], distinct: true)
            == ["1.0", "1.0", "1.0", "NULL"])
    }

    @Test func wideIntegersAgreeWithSmallOnes() {
        for seed in LawSettings(runs: 500).seeds {
            var random = SeededGenerator(seed: seed)
            var limbs = [UInt64](repeating: 0, count: WideInteger.limbCount)
            var model: Int128 = 0
            for _ in 0..<20 {
                let value = Int128(Int64(bitPattern: random.next()) >> Int64(random.number(0...40)))
                let weight = Int64(random.number(-1000...1000))
                WideInteger.add(Decimal(unscaled: value, scale: 0), times: weight, to: &limbs)
                model += value * Int128(weight)
            }
            #expect(WideInteger(loadingFrom: limbs).decimal(unit: 0, scale: 0)?.unscaled == model, "MILLRACE_SEED=\(seed)")
            var sum = WideInteger(model)
            sum.multiply(byPowerOfTen: 30)
            sum.multiply(byWeight: -1)
            #expect(sum.decimal(unit: 30, scale: 0)?.unscaled == -model, "MILLRACE_SEED=\(seed)")
        }
    }
}
