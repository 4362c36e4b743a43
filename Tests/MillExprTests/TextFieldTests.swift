import CText
import MillTestKit
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// The search for a field of a text, with the processor's vectors and without, against splitting. The pages before and after each text cannot be read.
final class TextFieldTests {
    private let page: Int
    /// Three, of which only the one in the middle can be read.
    private let pages: UnsafeMutableRawPointer

    init() throws {
        page = Int(sysconf(Int32(_SC_PAGESIZE)))
        let memory = mmap(nil, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        pages = try #require(memory == MAP_FAILED ? nil : memory)
        try #require(mprotect(pages + page, page, PROT_READ | PROT_WRITE) == 0)
    }

    deinit { munmap(pages, 3 * page) }

    private func check(_ bytes: [UInt8], _ separator: UInt8) {
        let fields = bytes.split(separator: separator, omittingEmptySubsequences: false)
        for start in [page, 2 * page - bytes.count] { check(bytes, separator, fields, (pages + start).assumingMemoryBound(to: UInt8.self)) }
    }

    private func check(_ bytes: [UInt8], _ separator: UInt8, _ fields: [ArraySlice<UInt8>], _ text: UnsafeMutablePointer<UInt8>) {
        text.update(from: bytes, count: bytes.count)
        for number in 1...fields.count + 2 {
            let range = number <= fields.count ? fields[number - 1].startIndex..<fields[number - 1].endIndex : 0..<0
            for found in [mill_text_field(text, bytes.count, separator, number), mill_text_field_portable(text, bytes.count, separator, number)] {
                #expect(found.start..<found.end == range, "field \(number) of \(bytes)")
            }
        }
    }

    @Test func everyLengthAndPlaceOfASeparator() {
        for count in [0, 1, 2, 3, 7, 8, 9, 12, 15, 16, 17, 31, 33, 63, 64, 65, 79, 80, 81, 127, 128, 129, 145] {
            check([UInt8](repeating: 97, count: count), 47)
            check([UInt8](repeating: 47, count: count), 47)
            for place in 0..<count {
                var bytes = [UInt8](repeating: 46, count: count)
                bytes[place] = 47
                check(bytes, 47)
            }
        }
    }

    @Test func longFieldsBetweenShortOnes() {
        for gap in [63, 64, 65, 127, 128, 129, 200, 500] {
            var bytes = Array("a/b/".utf8)
            for _ in 0..<3 { bytes += [UInt8](repeating: 120, count: gap) + Array("/c/".utf8) }
            check(bytes, 47)
            check(bytes + [UInt8](repeating: 121, count: gap), 47)
        }
    }

    @Test(arguments: [1, 2, 3] as [UInt64]) func randomBytes(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        // Bytes that differ in one bit, among them those that a carry between bytes would mix up.
        let alphabet: [UInt8] = [0, 1, 0x7F, 0x80, 0x81, 0xFF]
        for _ in 0..<400 {
            let separator = alphabet.randomElement(using: &random) ?? 0
            check((0..<Int.random(in: 0...200, using: &random)).map { _ in alphabet.randomElement(using: &random) ?? 0 }, separator)
        }
    }
}
