#pragma once
// Records of JSON objects to columns.
//
// Place in the path: MillText's JSONRecordDecoder hands over a chunk's records, a batch at a time; the columns are those of the
// DeltaBatch that goes into the circuit.
//
// Steps for a window of records (about 64 KiB, so that tokens and bytes stay in the second-level cache):
// 1. simdjson's stage 1 finds all tokens of the window at once and proves UTF-8, closed strings and no control characters in them.
//    A newline follows each record and cannot lie in a string, so the tokens of one record never depend on another record. Where
//    records do not lie like that in the buffer, they are first copied to where they do.
// 2. A window that stage 1 refuses is cut in eight and tried again, down to the records at fault.
// 3. Each record is walked token by token with the full grammar; every value is checked, wanted or not. What leads to each value
//    (comma, key, colon) is expected to be as it was at that place in an earlier record, and proven by comparing the bytes.
//
// Strings without escapes are not copied: their views point into the input. Invariant of the walk: a position of a token is only
// advanced after its byte was proven to be a token, and the byte at the window's end is a newline, which is none; so no read goes
// beyond the list of tokens.
//
// Acceptance depends on the record alone: the fields are checked the same whether wanted or not, and memory of earlier records
// (what is expected, the last day) never changes a result.

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "Bytes.hpp"
#include "CJSONDecode.h"
#include "StructuralIndex.hpp"
#include "ValueReader.hpp"

namespace mill {

/// What to expect at a place in the record: the bytes that led to the value there in an earlier record, from the bracket or comma to the
/// colon. They have no backslash, so finding them again proves three tokens and the key at once.
struct Expectation {
  /// Expecting nothing: no token begins with white space, and the byte at a window's end is a newline or a carriage return.
  uint32_t length = 1;
  int32_t field = -1;
  bool exact = false;
  uint64_t low = ' ', low_mask = 0xFF, high = 0, high_mask = 0;
  std::string rest;

  /// Whether a record that ends at `end` has them at `at`, all of them: its list of tokens has these three then.
  bool is_at(const uint8_t *bytes, uint32_t at, uint32_t end) const {
    const uint8_t *p = bytes + at;
    if (((load64(p) ^ low) & low_mask) | ((load64(p + 8) ^ high) & high_mask)) return false;
    return at + length <= end && (length <= 16 || std::memcmp(p + 16, rest.data(), length - 16) == 0);
  }

  void learn(const uint8_t *p, uint32_t count, int32_t declared, bool to_the_letter) {
    length = count;
    field = declared;
    exact = to_the_letter;
    low_mask = low_bytes(count);
    high_mask = count > 8 ? low_bytes(count - 8) : 0;
    low = load64(p) & low_mask;
    high = load64(p + 8) & high_mask;
    rest.assign(reinterpret_cast<const char *>(p) + 16, count > 16 ? count - 16 : 0);
  }
};

class Decoder : ValueReader {
 public:
  Decoder(const mill_json_field *fields, uint32_t count);

  mill_json_progress decode(const mill_json_input &input, uint32_t first, uint32_t rows_max, size_t bytes_max, void *const *columns, uint32_t *row_records);

  const std::vector<mill_json_reject> &rejects() const { return rejects_; }
  const FieldState &field(uint32_t index) const { return fields_[index]; }
  Arena &arena() { return arena_; }

 private:
  /// A record of the window: its number in the input and its bytes from the window's start.
  struct Placed {
    uint32_t record;
    uint32_t start;
    uint32_t end;
  };

  void begin(uint32_t rows_max, void *const *columns);
  uint32_t place_window(const mill_json_input &input, uint32_t first, uint32_t records_max, size_t bytes_max);
  uint32_t copy_window(const mill_json_input &input, uint32_t first, uint32_t records_max, size_t bytes_max);
  void decode_placed(const Placed *placed, uint32_t count, uint32_t *row_records);
  void walk_all(const Placed *placed, uint32_t count, uint32_t base, uint32_t *row_records);

  bool walk_record(uint32_t &token, uint32_t end);
  bool read_key(uint32_t token, uint32_t end, Expectation &expected, int32_t &field, bool &exact);
  void find_field(const uint8_t *key, uint32_t length, int32_t &field, bool &exact) const;
  bool read_member(int32_t field, bool exact, uint32_t &token);
  bool read_value(FieldState &field, int32_t index, uint32_t &token);
  bool read_string(FieldState &field, int32_t index, uint32_t &token);
  bool read_number(FieldState &field, int32_t index, uint32_t &token);
  bool read_literal(FieldState &field, int32_t index, uint32_t &token);
  bool read_container(FieldState &field, int32_t index, uint32_t &token);
  bool skip_value(uint32_t &token);
  bool skip_scalar(uint32_t &token);
  bool skip_container(uint32_t &token);
  bool number_extent(uint32_t token, uint32_t &end);
  bool literal_extent(uint32_t token, uint32_t &length);
  bool string_extent(uint32_t token, uint32_t &length);
  View compact(const uint8_t *text, uint32_t length);

  void set_null(FieldState &field);
  void refuse_value(FieldState &field, int32_t index, uint32_t reason, const uint8_t *raw, uint32_t length);
  void refuse_record(uint32_t record, uint32_t reason, const uint8_t *raw, uint32_t length);
  bool fail_within(uint32_t end, uint32_t token);
  bool fail(uint32_t reason) { reason_ = reason; return false; }
  uint8_t *slot(FieldState &field) { return field.slot(row_); }

  std::vector<FieldState> fields_;
  std::vector<Expectation> expectations_;
  StructuralIndex index_;
  std::vector<mill_json_reject> rejects_;
  std::vector<uint8_t> unwanted_;

  // The window.
  const uint8_t *bytes_ = nullptr;
  const uint32_t *tokens_ = nullptr;
  bool escapes_ = false;
  std::vector<Placed> placed_;

  // The record.
  uint64_t serial_ = 0;
  uint32_t record_ = 0;
  uint32_t row_ = 0;
  uint32_t set_fields_ = 0;
  bool made_null_ = false;
  uint32_t reason_ = 0;
};

}  // namespace mill
