import CJSONDecode
import MillColumnar

/// Why a record or value was refused, as the rejects relation shows it.
enum RejectReason {
    static func text(_ reason: mill_json_reason, type: SQLType?) -> String {
        let type = type?.name ?? ""
        return switch reason {
        case MILL_JSON_NULL_RECORD: "the record is null"
        case MILL_JSON_EMPTY_RECORD: "the record is empty"
        case MILL_JSON_NOT_OBJECT: "the record is not a JSON object"
        case MILL_JSON_INVALID_UTF8: "the record is not valid UTF-8"
        case MILL_JSON_CONTROL_CHARACTER: "malformed JSON: control character in a string, or a string without end"
        case MILL_JSON_UNCLOSED_STRING: "malformed JSON: string without end"
        case MILL_JSON_INVALID_NUMBER: "malformed JSON: invalid number"
        case MILL_JSON_INVALID_ESCAPE: "malformed JSON: invalid escape in a string"
        case MILL_JSON_TRAILING: "malformed JSON: more after the end of the value"
        case MILL_JSON_TOO_DEEP: "JSON nested deeper than 1024 levels"
        case MILL_CSV_FEWER_FIELDS: "the record has fewer values than the file has columns"
        case MILL_CSV_MORE_FIELDS: "the record has more values than the file has columns"
        case MILL_CSV_UNCLOSED_QUOTE: "malformed CSV: a quote is not closed"
        case MILL_CSV_AFTER_QUOTE: "malformed CSV: a closing quote is not followed by the delimiter"
        case MILL_CSV_ZERO_BYTE: "the record has a zero byte"
        case MILL_JSON_WRONG_TYPE: "a JSON value of this kind is not accepted for type \(type)"
        case MILL_JSON_OUT_OF_RANGE: "value out of range for type \(type)"
        case MILL_JSON_NOT_INTEGRAL: "not a whole number, as type \(type) needs"
        case MILL_JSON_BAD_TEXT: "invalid text for type \(type)"
        case MILL_JSON_NOT_ON_CALENDAR: "no such date or time of day"
        case MILL_JSON_UNPAIRED_SURROGATE: "unpaired surrogate in a string"
        case MILL_JSON_ZERO_CHARACTER: "character \\u0000 cannot be in a value of type \(type)"
        default: "malformed JSON"
        }
    }
}
