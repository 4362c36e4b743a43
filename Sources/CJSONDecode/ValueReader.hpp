#pragma once
// From a value's text to a column's slot: what the decoders of JSON and of CSV have in common.

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "Arena.hpp"
#include "Bytes.hpp"
#include "CJSONDecode.h"
#include "Calendar.hpp"
#include "Numbers.hpp"
#include "Strings.hpp"

namespace mill {

/// A declared field and where its values go in the current call.
struct FieldState {
  uint8_t kind = 0;
  uint8_t stride = 0;
  int16_t precision = -1;
  int16_t scale = 0;
  bool has_null = false;
  /// The last record that set it: twice the record's serial, plus one when its key matched to the letter.
  uint64_t stamp = 0;
  uint8_t *data = nullptr;
  /// `stride`, or 0 for a field that is only checked.
  uint32_t step = 0;
  std::vector<uint64_t> validity;
  std::string name;
  std::string folded;

  void declare(const mill_json_field &declared) {
    static const uint8_t strides[] = {1, 2, 4, 8, 4, 8, 24, 16, 16, 4, 8, 8, 16, 16};
    kind = declared.kind;
    stride = strides[kind];
    precision = declared.precision;
    scale = declared.scale;
  }

  /// A call begins that fills `column`, or checks only and writes to `unwanted`, which has 64 bytes.
  void begin(uint32_t rows_max, void *column, uint8_t *unwanted) {
    has_null = false;
    data = column ? static_cast<uint8_t *>(column) : unwanted;
    step = column ? stride : 0;
    validity.assign((rows_max + 63) / 64, ~0ull);
  }

  uint8_t *slot(uint32_t row) { return data + size_t(row) * step; }

  void set_null(uint32_t row) {
    std::memset(slot(row), 0, stride);
    validity[row >> 6] &= ~(1ull << (row & 63));
    has_null = true;
  }

  /// The row was given up: another takes its place.
  void unset_null(uint32_t row) { validity[row >> 6] |= 1ull << (row & 63); }
};

template <typename T>
inline void store(uint8_t *slot, T value) { std::memcpy(slot, &value, sizeof(T)); }

/// Reads texts as the types of fields; bytes that it has to make are in its arena.
class ValueReader {
 protected:
  uint32_t convert_text(const FieldState &field, const uint8_t *text, uint32_t length, uint8_t *slot);
  uint32_t convert_number(const FieldState &field, const uint8_t *text, uint32_t length, uint8_t *slot);

  Arena arena_;
  TimestampReader timestamps_;
};

/// A string's text to a value of the field's type. `text` has 16 readable bytes after its end.
inline uint32_t ValueReader::convert_text(const FieldState &field, const uint8_t *text, uint32_t length, uint8_t *out) {
  switch (field.kind) {
    case MILL_JSON_VARCHAR:
    case MILL_JSON_TEXT: store(out, make_view(text, length)); return MILL_JSON_OK;
    case MILL_JSON_TIMESTAMP: {
      int64_t micros;
      uint32_t reason = timestamps_.read(text, length, micros);
      if (reason == MILL_JSON_OK) store(out, micros);
      return reason;
    }
    case MILL_JSON_DATE: {
      int32_t days;
      uint32_t reason = parse_date(text, length, days);
      if (reason == MILL_JSON_OK) store(out, days);
      return reason;
    }
    case MILL_JSON_TIME: {
      int64_t micros;
      uint32_t reason = parse_time(text, length, micros);
      if (reason == MILL_JSON_OK) store(out, micros);
      return reason;
    }
    case MILL_JSON_BOOL:
      if (same_word(text, length, "true")) store(out, uint8_t(1));
      else if (same_word(text, length, "false")) store(out, uint8_t(0));
      else return MILL_JSON_BAD_TEXT;
      return MILL_JSON_OK;
    case MILL_JSON_BYTEA: {
      uint8_t *bytes = arena_.reserve(length + 16);
      uint32_t written = 0;
      uint32_t reason = parse_bytes(text, length, bytes, written);
      if (reason != MILL_JSON_OK) return reason;
      store(out, make_view(bytes, written));
      arena_.commit(written > 12 ? written : 0);
      return MILL_JSON_OK;
    }
    default: return convert_number(field, text, length, out);
  }
}

/// A number's text, or a string that holds one.
inline uint32_t ValueReader::convert_number(const FieldState &field, const uint8_t *text, uint32_t length, uint8_t *out) {
  uint32_t reason = MILL_JSON_OK;
  switch (field.kind) {
    case MILL_JSON_INT16:
    case MILL_JSON_INT32:
    case MILL_JSON_INT64: {
      int64_t value;
      if ((reason = parse_int64(text, length, value))) return reason;
      if (field.kind == MILL_JSON_INT64) store(out, value);
      else if (field.kind == MILL_JSON_INT32 && value == int32_t(value)) store(out, int32_t(value));
      else if (field.kind == MILL_JSON_INT16 && value == int16_t(value)) store(out, int16_t(value));
      else return MILL_JSON_OUT_OF_RANGE;
      return MILL_JSON_OK;
    }
    case MILL_JSON_FLOAT32: {
      float value;
      if (!(reason = parse_float(text, length, value))) store(out, value);
      return reason;
    }
    case MILL_JSON_FLOAT64: {
      double value;
      if (!(reason = parse_float(text, length, value))) store(out, value);
      return reason;
    }
    case MILL_JSON_NUMERIC: {
      DecimalValue value;
      if (!(reason = parse_numeric(text, length, field.precision, field.scale, value))) store(out, value);
      return reason;
    }
    case MILL_JSON_TIMESTAMP: {
      int64_t micros;
      if (!(reason = parse_epoch(text, length, micros))) store(out, micros);
      return reason;
    }
    case MILL_JSON_DATE: {
      int64_t days;
      if ((reason = parse_int64(text, length, days))) return reason;
      // 0001-01-01 to 5874897-12-31.
      if (days < -719162 || days > 2145031948) return MILL_JSON_OUT_OF_RANGE;
      store(out, int32_t(days));
      return MILL_JSON_OK;
    }
    default: return MILL_JSON_WRONG_TYPE;
  }
}

}  // namespace mill
