// The walk over one record's tokens: grammar, keys, duplicate fields, and the values of fields that nobody declared.

#include <cstring>

#include "Decoder.hpp"
#include "Numbers.hpp"
#include "Strings.hpp"

namespace mill {

namespace {

constexpr uint32_t depth_max = 1024;
/// Longer ones are looked up each time.
constexpr uint32_t expectation_bytes_max = 64;

}  // namespace

bool Decoder::walk_record(uint32_t &at, uint32_t end) {
  uint32_t token = at;
  if (tokens_[token] >= end) return fail(MILL_JSON_EMPTY_RECORD);
  if (bytes_[tokens_[token]] != '{') {
    // Not an object; whether it is JSON at all decides the reason.
    if (!skip_value(token)) return fail_within(end, token);
    return fail(tokens_[token] < end ? MILL_JSON_TRAILING : MILL_JSON_NOT_OBJECT);
  }
  // Each turn stands at the bracket or comma before a member, or at the bracket that ends the record.
  Expectation *expected = expectations_.data(), *const last = expected + expectations_.size() - 1;
  for (;;) {
    int32_t field = expected->field;
    bool exact = expected->exact;
    if (!expected->is_at(bytes_, tokens_[token], end)) [[unlikely]] {
      const bool first = token == at;
      if (bytes_[tokens_[token + first]] == '}') {
        token += first;
        break;
      }
      if (!first && bytes_[tokens_[token]] != ',') return fail(MILL_JSON_MALFORMED);
      if (!read_key(token, end, *expected, field, exact)) return fail_within(end, token + 1);
    }
    token += 3;
    if (!(field >= 0 ? read_member(field, exact, token) : skip_value(token))) return fail_within(end, token);
    if (expected != last) ++expected;
  }
  if (tokens_[token] >= end) return fail(MILL_JSON_MALFORMED);
  ++token;
  if (tokens_[token] < end) return fail(MILL_JSON_TRAILING);
  at = token;
  return true;
}

/// A walk failed at a token. One of another record says nothing of this one, but that it ended too early.
bool Decoder::fail_within(uint32_t end, uint32_t token) { return tokens_[token] < end ? false : fail(MILL_JSON_MALFORMED); }

/// The declared field of the member after a bracket or comma, -1 for none; proves its key and colon, and expects them in records to come
/// if they lie in this one, which ends at `end`.
bool Decoder::read_key(uint32_t token, uint32_t end, Expectation &expected, int32_t &field, bool &exact) {
  field = -1;
  exact = false;
  if (bytes_[tokens_[token + 1]] != '"') return fail(MILL_JSON_MALFORMED);
  const uint8_t *key = bytes_ + tokens_[token + 1] + 1;
  uint32_t length;
  if (!string_extent(token + 1, length)) return false;
  const bool escaped = escapes_ && has_backslash(key, length);
  if (escaped) {
    if (!escapes_are_valid(key, length)) return fail(MILL_JSON_INVALID_ESCAPE);
    // Rewritten beside the arena's live bytes and not kept. A key that is no text matches nothing.
    uint8_t *text = arena_.reserve(length + 16);
    uint32_t written;
    if (unescape(key, length, text, written) == MILL_JSON_OK) find_field(text, written, field, exact);
  } else {
    find_field(key, length, field, exact);
  }
  if (bytes_[tokens_[token + 2]] != ':') return fail(MILL_JSON_MALFORMED);
  const uint8_t *start = bytes_ + tokens_[token];
  const uint32_t whole = tokens_[token + 2] + 1 - tokens_[token];
  if (!escaped && tokens_[token + 2] < end && whole <= expectation_bytes_max) expected.learn(start, whole, field, exact);
  return true;
}

void Decoder::find_field(const uint8_t *key, uint32_t length, int32_t &field, bool &exact) const {
  for (size_t i = 0; i < fields_.size(); ++i) {
    const std::string &name = fields_[i].name;
    if (name.size() != length) continue;
    if (std::memcmp(name.data(), key, length) == 0) {
      field = int32_t(i);
      exact = true;
      return;
    }
    if (field >= 0) continue;
    const std::string &folded = fields_[i].folded;
    uint32_t same = 0;
    while (same < length && lower(key[same]) == uint8_t(folded[same])) ++same;
    if (same == length) field = int32_t(i);
  }
}

/// A declared field's value. The last of equal keys wins, and one that matches to the letter wins over one that does so but for case.
inline bool Decoder::read_member(int32_t index, bool exact, uint32_t &token) {
  FieldState &field = fields_[size_t(index)];
  const uint64_t stamp = serial_ << 1 | (exact ? 1 : 0);
  if (field.stamp >> 1 == serial_) [[unlikely]] {
    if (field.stamp > stamp) return skip_value(token);
    field.validity[row_ >> 6] |= 1ull << (row_ & 63);
    for (size_t i = rejects_.size(); i > 0 && rejects_[i - 1].record == record_; --i) {
      if (rejects_[i - 1].field == index) {
        rejects_.erase(rejects_.begin() + long(i) - 1);
        break;
      }
    }
  } else {
    ++set_fields_;
  }
  field.stamp = stamp;
  return read_value(field, index, token);
}

bool Decoder::skip_value(uint32_t &token) {
  uint8_t c = bytes_[tokens_[token]];
  return c == '{' || c == '[' ? skip_container(token) : skip_scalar(token);
}

inline bool Decoder::skip_scalar(uint32_t &token) {
  const uint8_t *at = bytes_ + tokens_[token];
  uint32_t length;
  if (*at == '"') {
    if (!string_extent(token, length)) return false;
    if (escapes_ && has_backslash(at + 1, length) && !escapes_are_valid(at + 1, length)) return fail(MILL_JSON_INVALID_ESCAPE);
  } else if (*at == '-' || is_digit(*at)) {
    if (!number_extent(token, length)) return false;
  } else if (!literal_extent(token, length)) {
    return false;
  }
  ++token;
  return true;
}

bool Decoder::skip_container(uint32_t &token) {
  uint64_t is_object[depth_max / 64] = {};
  uint32_t depth = 0;
  for (;;) {
    // At a value.
    uint8_t c = bytes_[tokens_[token]];
    bool closed = false;
    if (c == '{' || c == '[') {
      if (depth == depth_max) return fail(MILL_JSON_TOO_DEEP);
      uint64_t bit = 1ull << (depth & 63);
      if (c == '{') is_object[depth >> 6] |= bit; else is_object[depth >> 6] &= ~bit;
      ++depth;
      ++token;
      closed = bytes_[tokens_[token]] == (c == '{' ? '}' : ']');
    } else if (!skip_scalar(token)) {
      return false;
    }
    // After a value, or at the end of an empty container.
    bool opened = c == '{' || c == '[';
    while (closed || !opened) {
      if (!closed) {
        uint8_t next = bytes_[tokens_[token]];
        bool object = is_object[(depth - 1) >> 6] >> ((depth - 1) & 63) & 1;
        if (next == ',') { ++token; break; }
        if (next != (object ? '}' : ']')) return fail(MILL_JSON_MALFORMED);
      }
      ++token;
      closed = false;
      opened = false;
      if (--depth == 0) return true;
    }
    if (is_object[(depth - 1) >> 6] >> ((depth - 1) & 63) & 1) {
      if (bytes_[tokens_[token]] != '"') return fail(MILL_JSON_MALFORMED);
      if (!skip_scalar(token)) return false;
      if (bytes_[tokens_[token]] != ':') return fail(MILL_JSON_MALFORMED);
      ++token;
    }
  }
}

}  // namespace mill
