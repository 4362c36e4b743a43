#pragma once
// The insides of JSON strings: escapes checked or resolved, base64 and hex.

#include <cstdint>
#include <cstring>

#include "Bytes.hpp"
#include "CJSONDecode.h"

namespace mill {

inline int hex_value(uint8_t c) {
  if (is_digit(c)) return c - '0';
  uint8_t l = lower(c);
  return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

/// Four hex digits, or -1.
inline int32_t hex_four(const uint8_t *p) {
  int32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    int digit = hex_value(p[i]);
    if (digit < 0) return -1;
    value = value << 4 | digit;
  }
  return value;
}

inline bool has_backslash(const uint8_t *p, uint32_t length) { return length != 0 && std::memchr(p, '\\', length) != nullptr; }

/// Whether every backslash begins an escape of RFC 8259.
inline bool escapes_are_valid(const uint8_t *p, uint32_t length) {
  const uint8_t *end = p + length;
  while ((p = static_cast<const uint8_t *>(std::memchr(p, '\\', size_t(end - p))))) {
    if (p + 1 >= end) return false;
    switch (p[1]) {
      case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't': p += 2; break;
      case 'u':
        if (end - p < 6 || hex_four(p + 2) < 0) return false;
        p += 6;
        break;
      default: return false;
    }
    if (p == end) return true;
  }
  return true;
}

inline uint8_t *put_utf8(uint8_t *out, uint32_t c) {
  if (c < 0x80) { *out++ = uint8_t(c); return out; }
  if (c < 0x800) { *out++ = uint8_t(0xC0 | c >> 6); *out++ = uint8_t(0x80 | (c & 63)); return out; }
  if (c < 0x10000) {
    *out++ = uint8_t(0xE0 | c >> 12); *out++ = uint8_t(0x80 | (c >> 6 & 63)); *out++ = uint8_t(0x80 | (c & 63));
    return out;
  }
  *out++ = uint8_t(0xF0 | c >> 18); *out++ = uint8_t(0x80 | (c >> 12 & 63)); *out++ = uint8_t(0x80 | (c >> 6 & 63)); *out++ = uint8_t(0x80 | (c & 63));
  return out;
}

/// Resolves the (valid) escapes of a string into `out`, which is never longer than the input.
inline uint32_t unescape(const uint8_t *p, uint32_t length, uint8_t *out, uint32_t &written) {
  const uint8_t *end = p + length, *begin_out = out;
  while (p != end) {
    auto *slash = static_cast<const uint8_t *>(std::memchr(p, '\\', size_t(end - p)));
    size_t plain = size_t((slash ? slash : end) - p);
    std::memcpy(out, p, plain);
    out += plain;
    p += plain;
    if (!slash) break;
    uint8_t kind = p[1];
    if (kind != 'u') {
      p += 2;
      switch (kind) {
        case 'b': *out++ = '\b'; break;
        case 'f': *out++ = '\f'; break;
        case 'n': *out++ = '\n'; break;
        case 'r': *out++ = '\r'; break;
        case 't': *out++ = '\t'; break;
        default: *out++ = kind;
      }
      continue;
    }
    uint32_t c = uint32_t(hex_four(p + 2));
    p += 6;
    if (c == 0) return MILL_JSON_ZERO_CHARACTER;
    if (c >= 0xDC00 && c < 0xE000) return MILL_JSON_UNPAIRED_SURROGATE;
    if (c >= 0xD800 && c < 0xDC00) {
      if (end - p < 6 || p[0] != '\\' || p[1] != 'u') return MILL_JSON_UNPAIRED_SURROGATE;
      int32_t second = hex_four(p + 2);
      if (second < 0xDC00 || second >= 0xE000) return MILL_JSON_UNPAIRED_SURROGATE;
      c = 0x10000 + ((c - 0xD800) << 10) + (uint32_t(second) - 0xDC00);
      p += 6;
    }
    out = put_utf8(out, c);
  }
  written = uint32_t(out - begin_out);
  return MILL_JSON_OK;
}

/// bytea: `\x` and hex digits in pairs, else base64 with or without padding. `out` has room for the input's length.
inline uint32_t parse_bytes(const uint8_t *p, uint32_t length, uint8_t *out, uint32_t &written) {
  const uint8_t *begin_out = out;
  if (length >= 2 && p[0] == '\\' && p[1] == 'x') {
    if (length % 2) return MILL_JSON_BAD_TEXT;
    for (uint32_t i = 2; i < length; i += 2) {
      int high = hex_value(p[i]), low = hex_value(p[i + 1]);
      if (high < 0 || low < 0) return MILL_JSON_BAD_TEXT;
      *out++ = uint8_t(high << 4 | low);
    }
    written = uint32_t(out - begin_out);
    return MILL_JSON_OK;
  }
  uint32_t padded = length;
  while (length && padded - length < 2 && p[length - 1] == '=') --length;
  if ((padded != length && padded % 4) || length % 4 == 1) return MILL_JSON_BAD_TEXT;
  uint32_t bits = 0, count = 0;
  for (uint32_t i = 0; i < length; ++i) {
    uint8_t c = p[i];
    int value = uint8_t(c - 'A') < 26 ? c - 'A' : uint8_t(c - 'a') < 26 ? c - 'a' + 26 : is_digit(c) ? c - '0' + 52 : c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
    if (value < 0) return MILL_JSON_BAD_TEXT;
    bits = bits << 6 | uint32_t(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      *out++ = uint8_t(bits >> count);
      bits &= (1u << count) - 1;
    }
  }
  if (bits != 0) return MILL_JSON_BAD_TEXT;  // the unused bits of the last character
  written = uint32_t(out - begin_out);
  return MILL_JSON_OK;
}

}  // namespace mill
