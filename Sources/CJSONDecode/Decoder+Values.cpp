// Values of declared fields: from a token to a column's slot.

#include <cstring>

#include "Decoder.hpp"
#include "Numbers.hpp"
#include "Strings.hpp"

namespace mill {

namespace {

template <typename T>
inline void store(uint8_t *slot, T value) { std::memcpy(slot, &value, sizeof(T)); }

}  // namespace

/// The bytes between a string's quotes. The closing quote is the last byte before the next token that is not white space: stage 1
/// makes anything else there a token of its own.
bool Decoder::string_extent(uint32_t token, uint32_t &length) {
  const uint32_t open = tokens_[token];
  uint32_t close = tokens_[token + 1] - 1;
  while (close > open && is_space(bytes_[close])) --close;
  if (close <= open || bytes_[close] != '"') return fail(MILL_JSON_MALFORMED);
  length = close - open - 1;
  return true;
}

/// The length of a number's text; fails unless it is one and nothing but a token or white space follows.
bool Decoder::number_extent(uint32_t token, uint32_t &length) {
  const uint8_t *at = bytes_ + tokens_[token];
  const uint8_t *end = json_number_end(at);
  if (!end || (end != bytes_ + tokens_[token + 1] && !is_space(*end))) return fail(MILL_JSON_INVALID_NUMBER);
  length = uint32_t(end - at);
  return true;
}

bool Decoder::literal_extent(uint32_t token, uint32_t &length) {
  const uint8_t *at = bytes_ + tokens_[token];
  length = load32(at) == load32(reinterpret_cast<const uint8_t *>("true")) || load32(at) == load32(reinterpret_cast<const uint8_t *>("null")) ? 4
           : *at == 'f' && load32(at + 1) == load32(reinterpret_cast<const uint8_t *>("alse")) ? 5 : 0;
  if (length == 0 || (tokens_[token] + length != tokens_[token + 1] && !is_space(at[length]))) return fail(MILL_JSON_MALFORMED);
  return true;
}

bool Decoder::read_value(FieldState &field, int32_t index, uint32_t &token) {
  const uint8_t c = bytes_[tokens_[token]];
  if (c == '"') return read_string(field, index, token);
  if (c == '-' || is_digit(c)) return read_number(field, index, token);
  if (c == '{' || c == '[') return read_container(field, index, token);
  return read_literal(field, index, token);
}

inline bool Decoder::read_string(FieldState &field, int32_t index, uint32_t &token) {
  const uint8_t *text = bytes_ + tokens_[token] + 1;
  uint32_t length;
  if (!string_extent(token, length)) return false;
  ++token;
  uint8_t *const out = slot(field);
  if (escapes_ && has_backslash(text, length)) [[unlikely]] {
    if (!escapes_are_valid(text, length)) return fail(MILL_JSON_INVALID_ESCAPE);
    const uint8_t *raw = text - 1;
    const uint32_t raw_length = length + 2;
    uint8_t *resolved = arena_.reserve(length + 16);
    uint32_t written = 0;
    uint32_t reason = unescape(text, length, resolved, written);
    if (reason == MILL_JSON_OK && field.kind == MILL_JSON_RAW) {
      store(out, make_view(raw, raw_length));
      return true;
    }
    if (reason == MILL_JSON_OK) {
      arena_.commit(written + 16);
      reason = convert_text(field, resolved, written, out);
    }
    if (reason != MILL_JSON_OK) refuse_value(field, index, reason, raw, raw_length);
    return true;
  }
  if (field.kind == MILL_JSON_VARCHAR || field.kind == MILL_JSON_TEXT) {
    store(out, make_view(text, length));
    return true;
  }
  if (field.kind == MILL_JSON_RAW) {
    store(out, make_view(text - 1, length + 2));
    return true;
  }
  if (uint32_t reason = convert_text(field, text, length, out)) refuse_value(field, index, reason, text - 1, length + 2);
  return true;
}

/// A string's text to a value of the field's type. `text` has 16 readable bytes after its end.
uint32_t Decoder::convert_text(FieldState &field, const uint8_t *text, uint32_t length, uint8_t *out) {
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
uint32_t Decoder::convert_number(FieldState &field, const uint8_t *text, uint32_t length, uint8_t *out) {
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

inline bool Decoder::read_number(FieldState &field, int32_t index, uint32_t &token) {
  const uint8_t *text = bytes_ + tokens_[token];
  if (field.kind == MILL_JSON_INT64 || field.kind == MILL_JSON_INT32) [[likely]] {
    // Up to 16 digits that fill the token: two words. A leading zero takes the long way to its error.
    const bool negative = *text == '-';
    const uint8_t *digits = text + negative;
    const uint32_t count = tokens_[token + 1] - tokens_[token] - negative;
    if (count - 1 < 16 && (*digits != '0' || count == 1)) {
      uint64_t value;
      bool fine;
      if (count <= 8) {
        const unsigned shift = 64 - 8 * count;
        uint64_t word = (load64(digits) << shift) | (zeros & low_bytes(8 - count));
        fine = eight_digits(word);
        value = parse_eight(word);
      } else {
        const unsigned missing = 16 - count;
        uint64_t high = (load64(digits) << (8 * missing % 64)) | (zeros & low_bytes(missing));
        uint64_t low = load64(digits + count - 8);
        fine = eight_digits(high) && eight_digits(low);
        value = uint64_t(parse_eight(high)) * 100000000ull + parse_eight(low);
      }
      if (fine) {
        int64_t number = negative ? -int64_t(value) : int64_t(value);
        ++token;
        if (field.kind == MILL_JSON_INT64) store(slot(field), number);
        else if (number == int32_t(number)) store(slot(field), int32_t(number));
        else refuse_value(field, index, MILL_JSON_OUT_OF_RANGE, text, count + negative);
        return true;
      }
    }
  }
  uint32_t length;
  if (!number_extent(token, length)) return false;
  ++token;
  uint32_t reason = MILL_JSON_OK;
  if (field.kind == MILL_JSON_VARCHAR || field.kind == MILL_JSON_RAW) store(slot(field), make_view(text, length));
  else reason = convert_number(field, text, length, slot(field));
  if (reason != MILL_JSON_OK) refuse_value(field, index, reason, text, length);
  return true;
}

bool Decoder::read_literal(FieldState &field, int32_t index, uint32_t &token) {
  const uint8_t *text = bytes_ + tokens_[token];
  uint32_t length;
  if (!literal_extent(token, length)) return false;
  ++token;
  if (*text == 'n') set_null(field);
  else if (field.kind == MILL_JSON_BOOL) store(slot(field), uint8_t(*text == 't'));
  else if (field.kind == MILL_JSON_VARCHAR || field.kind == MILL_JSON_RAW) store(slot(field), make_view(text, length));
  else refuse_value(field, index, MILL_JSON_WRONG_TYPE, text, length);
  return true;
}

/// An object or array: its compact text for a varchar, its text for jsonb, else not the field's type.
bool Decoder::read_container(FieldState &field, int32_t index, uint32_t &token) {
  const uint8_t *text = bytes_ + tokens_[token];
  if (!skip_container(token)) return false;
  // The closing bracket is the last token passed.
  const uint32_t length = uint32_t(bytes_ + tokens_[token - 1] + 1 - text);
  if (field.kind == MILL_JSON_RAW) store(slot(field), make_view(text, length));
  else if (field.kind == MILL_JSON_VARCHAR) store(slot(field), compact(text, length));
  else refuse_value(field, index, MILL_JSON_WRONG_TYPE, text, length);
  return true;
}

/// The text without white space outside strings; the same bytes if there is none.
View Decoder::compact(const uint8_t *text, uint32_t length) {
  bool inside = false, any = false;
  uint8_t *out = arena_.reserve(length + 16);
  uint32_t written = 0;
  for (uint32_t i = 0; i < length; ++i) {
    const uint8_t c = text[i];
    if (inside && c == '\\') out[written++] = text[i++];
    else if (c == '"') inside = !inside;
    else if (!inside && is_space(c)) { any = true; continue; }
    out[written++] = text[i];
  }
  if (!any) return make_view(text, length);
  arena_.commit(written + 16);
  return make_view(out, written);
}

}  // namespace mill
