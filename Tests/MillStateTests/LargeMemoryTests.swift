import CMemory
import Testing

@Suite struct LargeMemoryTests {
    private static let page = 2 << 20

    private struct Block {
        var memory: UnsafeMutablePointer<UInt64>
        var pages: Int
        var mark: UInt64

        /// The words that are looked at: one of each 4 KiB.
        private var words: StrideTo<Int> { stride(from: 0, to: pages * page / 8, by: 512) }

        var isZero: Bool { words.allSatisfy { memory[$0] == 0 } }
        var isOnlyMine: Bool { words.allSatisfy { memory[$0] == mark &+ UInt64($0) } }
        func fill() { for word in words { memory[word] = mark &+ UInt64(word) } }
        func free() { mill_large_free(memory, pages * page) }
    }

    /// What is kept is cut and put together again; no two blocks ever overlap, and what is to be zeroed is.
    @Test func noTwoOwnersHaveTheSameMemory() async {
        await withTaskGroup { group in
            for thread in 0..<4 as Range<UInt64> {
                group.addTask {
                    var random = SeededGenerator(seed: thread)
                    var held: [Block] = []
                    for step in 0..<400 as Range<UInt64> {
                        if held.count < 6, Bool.random(using: &random) {
                            let pages = Int.random(in: 1...5, using: &random)
                            let isZeroed = Bool.random(using: &random)
                            // A byte less is the same number of pages.
                            guard let memory = mill_large_allocate(pages * Self.page - 1, isZeroed) else { continue }
                            let block = Block(memory: memory.assumingMemoryBound(to: UInt64.self), pages: pages, mark: thread << 48 | step << 32)
                            #expect(UInt(bitPattern: memory) % UInt(Self.page) == 0)
                            if isZeroed { #expect(block.isZero) }
                            block.fill()
                            held.append(block)
                        } else if let index = held.indices.randomElement(using: &random) {
                            let block = held.remove(at: index)
                            #expect(block.isOnlyMine)
                            block.free()
                        }
                    }
                    for block in held {
                        #expect(block.isOnlyMine)
                        block.free()
                    }
                }
            }
        }
    }

    /// All that is kept goes back before a request fails; what comes after is served as before.
    @Test func memoryThatThereIsNoneOfIsNil() throws {
        let blocks = (0..<8).compactMap { mark in
            mill_large_allocate(Self.page, false).map { Block(memory: $0.assumingMemoryBound(to: UInt64.self), pages: 1, mark: mark) }
        }
        #expect(blocks.count == 8)
        for block in blocks {
            block.fill()
            block.free()
        }
        #expect(mill_large_allocate(1 << 50, true) == nil)
        let memory = try #require(mill_large_allocate(Self.page, true))
        let block = Block(memory: memory.assumingMemoryBound(to: UInt64.self), pages: 1, mark: 0)
        #expect(block.isZero)
        block.free()
    }
}
