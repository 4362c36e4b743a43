#pragma once
// Words out of bytes. Loads may touch up to 16 bytes after what they need: every buffer has that slack.

#include <cstdint>
#include <cstring>

namespace mill {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the decoder's word tricks assume little-endian words");

inline uint64_t load64(const uint8_t *p) { uint64_t w; std::memcpy(&w, p, 8); return w; }
inline uint32_t load32(const uint8_t *p) { uint32_t w; std::memcpy(&w, p, 4); return w; }
inline uint16_t load16(const uint8_t *p) { uint16_t w; std::memcpy(&w, p, 2); return w; }

inline bool is_space(uint8_t c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
inline bool is_digit(uint8_t c) { return uint8_t(c - '0') < 10; }
inline uint8_t lower(uint8_t c) { return uint8_t(c - 'A') < 26 ? uint8_t(c | 0x20) : c; }

/// All ones in the lowest `count` bytes, 0 to 8.
inline uint64_t low_bytes(unsigned count) { return count >= 8 ? ~0ull : (1ull << (8 * count)) - 1; }

constexpr uint64_t zeros = 0x3030303030303030ull;

inline bool eight_digits(uint64_t w) {
  return (((w & 0xF0F0F0F0F0F0F0F0ull) | (((w + 0x0606060606060606ull) & 0xF0F0F0F0F0F0F0F0ull) >> 4)) == 0x3333333333333333ull);
}

/// The number of eight digits, the first in the lowest byte.
inline uint32_t parse_eight(uint64_t w) {
  w -= zeros;
  w = w * 10 + (w >> 8);
  return uint32_t((((w & 0x000000FF000000FFull) * 0x000F424000000064ull) + (((w >> 16) & 0x000000FF000000FFull) * 0x0000271000000001ull)) >> 32);
}

/// Sixteen bytes that stand for a string, as MillColumnar's StringView: up to 12 bytes inside, longer ones behind a pointer.
struct View {
  uint64_t low;
  uint64_t high;
};

inline View make_view(const uint8_t *p, uint32_t length) {
  uint64_t first = load64(p);
  if (length > 12) return {uint64_t(length) | first << 32, uint64_t(reinterpret_cast<uintptr_t>(p))};
  uint64_t second = load64(p + 8);
  if (length <= 8) {
    first &= low_bytes(length);
    second = 0;
  } else {
    second &= low_bytes(length - 8);
  }
  return {uint64_t(length) | first << 32, first >> 32 | second << 32};
}

}  // namespace mill
