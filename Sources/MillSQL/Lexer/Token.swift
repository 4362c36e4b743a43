package import MillBase

/// One lexical unit: its class and the bytes it was written with. Text is decoded only where the parser needs it.
package struct Token: Hashable, Sendable {
    package enum Kind: UInt8, Sendable {
        /// Unquoted; `keyword` says whether the grammar knows it.
        case word
        case quotedIdentifier
        /// `U&"..."`.
        case unicodeIdentifier
        /// `'...'`.
        case string
        /// `E'...'`.
        case escapeString
        /// `U&'...'`.
        case unicodeString
        /// `$tag$...$tag$`.
        case dollarString
        /// `B'...'`.
        case bits
        /// `X'...'`.
        case hexBits
        case integer
        /// With a point or an exponent.
        case decimal
        /// `$1`.
        case parameter
        /// A run of operator characters, split as PostgreSQL's lexer does.
        case symbol
        case leftParenthesis, rightParenthesis, leftBracket, rightBracket, leftBrace, rightBrace
        case comma, semicolon, dot, dotDot, colon, doubleColon, colonEquals
        /// `=>`.
        case arrow
        case endOfText
        /// The text is not lexable from here on: `Lexer.failure` says why. Always last.
        case invalid
    }

    package var kind: Kind
    package var keyword: Keyword?
    /// Bytes of the statement's text.
    package var start: UInt32
    package var end: UInt32

    package var span: SourceSpan { SourceSpan(Int(start), Int(end)) }
}
