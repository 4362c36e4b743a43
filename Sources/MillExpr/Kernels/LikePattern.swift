import MillBase
import MillColumnar

/// A LIKE pattern taken apart once: the shapes that people write (`x`, `x%`, `%x`, `%x%`) become a comparison or a search,
/// anything else a greedy match that goes back to the last `%` only.
struct LikePattern {
    private enum Piece: Equatable {
        case byte(UInt8)
        /// `_`: one code point.
        case one
        /// `%`
        case any
    }

    private enum Shape {
        case exact([UInt8])
        case prefix([UInt8])
        case suffix([UInt8])
        case infix([UInt8])
        case general([Piece])
    }

    private let shape: Shape

    /// - Throws: 22019 when `escape` is more than one character, 22025 when the pattern ends with it.
    init(_ pattern: UnsafeBufferPointer<UInt8>, escape: UnsafeBufferPointer<UInt8>? = nil) throws(SQLError) {
        var escapeByte: UInt8? = UInt8(ascii: "\\")
        if let escape {
            guard escape.count <= 1 else {
                throw SQLError(SQLState("22019"), "invalid escape string", hint: "Escape string must be empty or one character.")
            }
            escapeByte = escape.first
        }
        var pieces: [Piece] = []
        var index = 0
        while index < pattern.count {
            let byte = pattern[index]
            index += 1
            if byte == escapeByte {
                guard index < pattern.count else { throw SQLError(.invalidEscapeSequence, "LIKE pattern must not end with escape character") }
                pieces.append(.byte(pattern[index]))
                index += 1
            } else if byte == UInt8(ascii: "%") {
                if pieces.last != .any { pieces.append(.any) }
            } else {
                pieces.append(byte == UInt8(ascii: "_") ? .one : .byte(byte))
            }
        }
        let opens = pieces.first == .any
        let closes = pieces.last == .any
        let body = pieces.dropFirst(opens ? 1 : 0).dropLast(closes && pieces.count > 1 ? 1 : 0)
        let literal = body.compactMap { piece -> UInt8? in if case .byte(let byte) = piece { byte } else { nil } }
        guard literal.count == body.count else {
            shape = .general(pieces)
            return
        }
        switch (opens, closes) {
        case (false, false): shape = .exact(literal)
        case (false, true): shape = .prefix(literal)
        case (true, false): shape = .suffix(literal)
        case (true, true): shape = .infix(literal)
        }
    }

    func matches(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        switch shape {
        case .exact(let bytes): text.elementsEqual(bytes)
        case .prefix(let bytes): text.starts(with: bytes)
        case .suffix(let bytes): text.count >= bytes.count && text[(text.count - bytes.count)...].elementsEqual(bytes)
        case .infix(let bytes): bytes.withUnsafeBufferPointer { UTF8Text.find($0, in: text, from: 0) != nil }
        case .general(let pieces): pieces.withUnsafeBufferPointer { Self.match($0, text) }
        }
    }

    private static func match(_ pieces: UnsafeBufferPointer<Piece>, _ text: UnsafeBufferPointer<UInt8>) -> Bool {
        var at = 0
        var piece = 0
        var retryPiece = -1
        var retryAt = 0
        while at < text.count {
            if piece < pieces.count {
                switch pieces[piece] {
                case .any:
                    retryPiece = piece
                    retryAt = at
                    piece += 1
                    continue
                case .one:
                    at = UTF8Text.next(text, at)
                    piece += 1
                    continue
                case .byte(let byte):
                    if byte == text[at] {
                        at += 1
                        piece += 1
                        continue
                    }
                }
            }
            guard retryPiece >= 0 else { return false }
            retryAt = UTF8Text.next(text, retryAt)
            at = retryAt
            piece = retryPiece + 1
        }
        while piece < pieces.count, pieces[piece] == .any { piece += 1 }
        return piece == pieces.count
    }
}
