import MillColumnar
import Testing

struct DeltaBatchDrawnTests {
    @Test func drawsRowsWithWeights() {
        let batch = DeltaBatch.drawn("id:int name:text; +1 1 ada; -1 2 'bob; o''neil'; +1 3 null")
        #expect(batch.count == 3)
        #expect(batch.weight(1) == -1)
        #expect(batch.columns[0].scalar(2) == .int(3))
        #expect(batch.columns[1].scalar(1) == .string("bob; o'neil"))
        #expect(batch.columns[1].isNull(2))
        #expect(batch.drawn(names: ["id", "name"]) == "id:int name:text; +1 1 ada; -1 2 'bob; o''neil'; +1 3 null")
    }

    @Test func onlyInsertionsHaveNoWeights() {
        #expect(DeltaBatch.drawn("a:int; +1 1; +1 2").weights == nil)
        #expect(DeltaBatch.drawn("a:int").count == 0)
    }

    @Test func timesMayBeWrittenAsSQLText() {
        let batch = DeltaBatch.drawn(
            "d:date t:time s:ts z:tstz i:interval; +1 '1970-01-02' '00:00:01' '1970-01-01 00:00:00.5' '1970-01-01 01:00:00+01' '1 day'"
        )
        #expect(batch.drawn == "a:date b:time c:ts d:tstz e:interval; +1 1 1000000 500000 0 0/1/0")
    }

    @Test func printingInvertsDrawing() {
        let text =
            "a:smallint b:bigint c:bool d:double e:real f:numeric g:ts h:date i:interval j:bytea k:jsonb l:text m:numeric(10,2) n:time o:tstz; "
            + #"+2 -1 5 true 1.5 -0.25 -0.05 7 8 1/-2/3 \x00ff '{"a": 1}' '' 12.50 9 10; "#
            + #"-1 null null null nan inf nan null null null null null 'null' null null null"#
        #expect(DeltaBatch.drawn(text).drawn == text)
    }

    @Test func randomBatchesSurvive() {
        var random = RandomRows(seed: 21)
        let types = KeyEncodingTests.types
        for _ in 0..<20 {
            let batch = random.batch(types, count: 20, weights: true)
            #expect(DeltaBatch.drawn(batch.drawn).drawn == batch.drawn)
        }
    }
}
