import Testing

@testable import MillKafkaWire

@Suite struct WireBufferPoolTests {
    @Test func memoryThatWasLetGoIsUsedAgain() {
        let pool = WireBufferPool(bytesMax: 1 << 20)
        var first: WireBuffer? = pool.buffer(capacity: 100_000)
        let memory = first?.base
        #expect(first?.capacity == 128 << 10)
        #expect(pool.kept(capacity: 100_000) == nil)
        first = nil
        let second = pool.kept(capacity: 70_000)
        #expect(second?.base == memory && second?.count == 0)
        #expect(pool.kept(capacity: 70_000) == nil)
    }

    @Test func noMoreIsKeptThanTheLimit() {
        let pool = WireBufferPool(bytesMax: 256 << 10)
        var buffers = (0..<4).map { _ in pool.buffer(capacity: 128 << 10) }
        #expect(buffers.count == 4)
        buffers = []
        #expect((0..<4).map { _ in pool.kept(capacity: 128 << 10) }.compactMap { $0 }.count == 2)
        #expect(pool.buffer(capacity: 3 << 20).capacity == 3 << 20)
        #expect(pool.buffer(capacity: 10).capacity == 10)
    }
}
