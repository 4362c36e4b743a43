import CJSONDecode
import MillBase
package import MillColumnar
package import MillConnectorKit

/// Records that are JSON objects (FORMAT PLAIN ENCODE JSON) to columns.
///
/// Fed with chunks of a `SplitReader`, feeds the circuit; owned by one worker. What is accepted depends on the record alone, never
/// on `wanted`: all declared fields are checked.
/// - A record that is not one well-formed JSON object in UTF-8 (RFC 8259, at most 1024 levels deep), or is null, is refused whole.
/// - A value that cannot be its column's type becomes NULL and a `Reject` with the column's name and the value's JSON text.
/// - A missing field and a JSON null are NULL. Unknown fields are ignored, but must be well-formed.
/// - A key matches a column to the letter, else by ASCII letters of either case. Of equal keys the last counts; one that matches
///   to the letter counts before one that does not.
///
/// | Column | From |
/// |---|---|
/// | boolean | `true`, `false`, or these as strings |
/// | integers | whole numbers in range, `3.0` and `3e2` too; strings that hold one |
/// | real, double | numbers, strings that hold one, `"NaN"`, `"Infinity"`, `"-Infinity"` |
/// | numeric | the number's exact digits, 38 at most; strings that hold one |
/// | varchar | strings; numbers and booleans as written; objects and arrays as compact JSON text |
/// | bytea | strings: `\x` and hex digits, else base64 |
/// | date | `YYYY-MM-DD`, or the date of a timestamp's text; a number counts days since 1970 |
/// | time | `HH:MM[:SS[.f]]` |
/// | timestamp, timestamptz | ISO 8601 with `T` or a space, any fraction (rounded to microseconds), `Z`, an offset or none (UTC); an offset is taken off for both types. A number is an epoch whose magnitude tells its unit: under 1e11 seconds, under 1e14 milliseconds, under 1e17 microseconds, else nanoseconds |
/// | interval | PostgreSQL's verbose form and ISO 8601 durations |
/// | jsonb | any value; its canonical text |
package final class JSONRecordDecoder: Decoder {
    private let columns: RecordColumns

    /// A decoder for a source declared with `fields` that makes batches of the `wanted` columns, in that order.
    package init(fields: [Field], wanted: [RecordOutput]) {
        columns = RecordColumns(fields, wanted, TextKernel(json: fields))
    }

    package func decode(_ chunk: RawChunk) -> DecodedChunk { columns.decode(chunk) }
    package var takesAnyOrder: Bool { true }
    package func mayStop(at chunk: RawChunk) -> Bool { false }
}
