// Values of declared fields: from a token to a column's slot.

#include <cstring>

#include "Decoder.hpp"
#include "Strings.hpp"

namespace mill {

/// The bytes between a string's quotes. The closing quote is the last byte before the next token that is not white space: stage 1
/// makes anything else there a token of its own.
bool Decoder::string_extent(uint32_t token, uint32_t &length) {
  const uint32_t open = tokens_[token];
  uint32_t close = tokens_[token + 1] - 1;
  if (bytes_[close] != '"') [[unlikely]] {
    while (close > open && is_space(bytes_[close])) --close;
    if (bytes_[close] != '"') return fail(MILL_JSON_MALFORMED);
  }
  if (close <= open) return fail(MILL_JSON_MALFORMED);
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

[[gnu::always_inline]] inline bool Decoder::read_string(FieldState &field, int32_t index, uint32_t &token) {
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

[[gnu::always_inline]] inline bool Decoder::read_number(FieldState &field, int32_t index, uint32_t &token) {
  const uint8_t *text = bytes_ + tokens_[token];
  if (field.kind == MILL_JSON_INT64 || field.kind == MILL_JSON_INT32) [[likely]] {
    // Digits that fill the token.
    const bool negative = *text == '-';
    const uint32_t count = tokens_[token + 1] - tokens_[token] - negative;
    uint64_t value;
    if (fast_digits(text + negative, count, value)) {
      int64_t number = negative ? -int64_t(value) : int64_t(value);
      ++token;
      if (field.kind == MILL_JSON_INT64) store(slot(field), number);
      else if (number == int32_t(number)) store(slot(field), int32_t(number));
      else refuse_value(field, index, MILL_JSON_OUT_OF_RANGE, text, count + negative);
      return true;
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
