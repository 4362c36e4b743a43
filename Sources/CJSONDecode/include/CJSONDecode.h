#pragma once
// JSON records to columns: the C face of the decoder. One call decodes a batch; nothing here is called per row.
//
// The buffer of an input has at least 64 readable bytes after its end, and so have the columns' buffers.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// How a declared field's values are read and laid out.
enum mill_json_kind {
  MILL_JSON_BOOL = 0,       // 1 byte
  MILL_JSON_INT16 = 1,
  MILL_JSON_INT32 = 2,
  MILL_JSON_INT64 = 3,
  MILL_JSON_FLOAT32 = 4,
  MILL_JSON_FLOAT64 = 5,
  MILL_JSON_NUMERIC = 6,    // 24 bytes: low, high, scale, kind
  MILL_JSON_VARCHAR = 7,    // 16-byte view
  MILL_JSON_BYTEA = 8,      // 16-byte view
  MILL_JSON_DATE = 9,       // int32, days since 1970-01-01
  MILL_JSON_TIME = 10,      // int64, microseconds since midnight
  MILL_JSON_TIMESTAMP = 11, // int64, microseconds since 1970-01-01, an offset is taken off
  MILL_JSON_TEXT = 12,      // 16-byte view of a JSON string's text; anything but a string is refused
  MILL_JSON_RAW = 13        // 16-byte view of the value's JSON text as it stands in the record
};

/// Why a record or a value was refused.
enum mill_json_reason {
  MILL_JSON_OK = 0,
  MILL_JSON_NULL_RECORD,
  MILL_JSON_EMPTY_RECORD,
  MILL_JSON_NOT_OBJECT,
  MILL_JSON_MALFORMED,
  MILL_JSON_INVALID_UTF8,
  MILL_JSON_CONTROL_CHARACTER,
  MILL_JSON_UNCLOSED_STRING,
  MILL_JSON_INVALID_NUMBER,
  MILL_JSON_INVALID_ESCAPE,
  MILL_JSON_TRAILING,
  MILL_JSON_TOO_DEEP,
  MILL_CSV_FEWER_FIELDS,
  MILL_CSV_MORE_FIELDS,
  MILL_CSV_UNCLOSED_QUOTE,
  MILL_CSV_AFTER_QUOTE,
  MILL_CSV_ZERO_BYTE,
  // From here on: reasons for one value.
  MILL_JSON_WRONG_TYPE,
  MILL_JSON_OUT_OF_RANGE,
  MILL_JSON_NOT_INTEGRAL,
  MILL_JSON_BAD_TEXT,
  MILL_JSON_NOT_ON_CALENDAR,
  MILL_JSON_UNPAIRED_SURROGATE,
  MILL_JSON_ZERO_CHARACTER
};

typedef struct {
  const char *name;
  uint32_t name_length;
  uint8_t kind;
  /// Of MILL_JSON_NUMERIC: digits in all, or -1 for no bound.
  int16_t precision;
  int16_t scale;
} mill_json_field;

typedef struct {
  const uint8_t *bytes;
  const uint32_t *starts;
  /// -1 is a null record.
  const int32_t *lengths;
  uint32_t count;
} mill_json_input;

typedef struct {
  uint32_t record;
  /// -1: the whole record.
  int32_t field;
  uint32_t reason;
  uint32_t raw_length;
  const uint8_t *raw;
} mill_json_reject;

typedef struct mill_json_decoder mill_json_decoder;

/// A decoder of records that have these fields. Names are copied.
mill_json_decoder *mill_json_decoder_create(const mill_json_field *fields, uint32_t count);
void mill_json_decoder_destroy(mill_json_decoder *decoder);

typedef struct {
  /// Rows written.
  uint32_t rows;
  /// The record to go on with.
  uint32_t next_record;
} mill_json_progress;

/// Decodes records from `first` on into `columns` (one pointer per declared field, NULL where the values are not wanted, room for
/// `rows_max` values each) until `rows_max` rows are written, `bytes_max` bytes of records are consumed, or the input ends.
/// `row_records` receives the record of each row. Values that are missing are zero bytes.
mill_json_progress mill_json_decode(
    mill_json_decoder *decoder, const mill_json_input *input, uint32_t first, uint32_t rows_max, size_t bytes_max, void *const *columns,
    uint32_t *row_records);

/// After a call: the bitmap of a field's present values (bit set: present) or NULL when all rows have one.
const uint64_t *mill_json_validity(const mill_json_decoder *decoder, uint32_t field);
/// After a call: what it refused, in record order. Pointers live as long as the input and the arena.
const mill_json_reject *mill_json_rejects(const mill_json_decoder *decoder, uint32_t *count);
/// After a call: the memory that holds unescaped and rewritten strings, or NULL; the caller frees it.
void *mill_json_take_arena(mill_json_decoder *decoder);
void mill_json_free_arena(void *arena);

/// Text helpers shared with the other readers of values. All return a `mill_json_reason`.
uint32_t mill_json_parse_timestamp(const uint8_t *text, size_t length, int64_t *micros);
uint32_t mill_json_parse_date(const uint8_t *text, size_t length, int32_t *days);
uint32_t mill_json_parse_time(const uint8_t *text, size_t length, int64_t *micros);

/// The name of the simdjson kernel that runs, such as "icelake".
const char *mill_json_kernel(void);

/// The yardstick of `make bench`: a plain C++ loop over simdjson's On-Demand API that decodes the seven fields of Nexmark bids in
/// NDJSON into columns of the same layout: 3 x int64, 3 x view (bytes copied to a heap), 1 x int64 microseconds. Columns have room
/// for 4096 rows and are reused. Needs 64 readable bytes after `length`. Returns the rows decoded, or -1 for bad input; `checksum`
/// keeps the optimiser honest.
int64_t mill_json_bench_bids(const uint8_t *bytes, size_t length, uint64_t *checksum);

#ifdef __cplusplus
}
#endif
