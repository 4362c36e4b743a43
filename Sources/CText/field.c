#include "CText.h"

#include <string.h>

// The separators of 64 bytes at a time as the bits of a word, and then from bit to bit: most fields are short, and a call of memchr for
// each of them takes longer than this does for all. Bit i is byte i.

/// Of 8 bytes.
static inline uint64_t matches8(const uint8_t *bytes, uint8_t separator) {
  const uint64_t low7 = 0x7F7F7F7F7F7F7F7Full;
  uint64_t word;
  memcpy(&word, bytes, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  word = __builtin_bswap64(word);
#endif
  word ^= 0x0101010101010101ull * separator;
  // The highest bit of each byte that is zero, and no other.
  uint64_t zeros = ~(((word & low7) + low7) | word | low7);
  return ((zeros >> 7) * 0x0102040810204080ull) >> 56;
}

static inline uint64_t matches16_portable(const uint8_t *bytes, uint8_t separator) {
  return matches8(bytes, separator) | matches8(bytes + 8, separator) << 8;
}

#if defined(__SSE2__)
#include <emmintrin.h>
static inline uint64_t matches16(const uint8_t *bytes, uint8_t separator) {
  __m128i equal = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)bytes), _mm_set1_epi8((char)separator));
  return (uint64_t)(uint32_t)_mm_movemask_epi8(equal);
}
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
static inline uint64_t matches16(const uint8_t *bytes, uint8_t separator) {
  static const uint8_t places[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  uint8x16_t bits = vandq_u8(vceqq_u8(vld1q_u8(bytes), vdupq_n_u8(separator)), vld1q_u8(places));
  return vaddv_u8(vget_low_u8(bits)) | (uint64_t)vaddv_u8(vget_high_u8(bits)) << 8;
}
#else
#define matches16 matches16_portable
#endif

typedef uint64_t (*matcher)(const uint8_t *bytes, uint8_t separator);

/// Of up to 64 bytes that begin at `at`. No byte outside the text is read: what is left over is read with bytes before it.
static inline __attribute__((always_inline)) uint64_t matches(const uint8_t *text, size_t count, size_t at, uint8_t separator, matcher of16) {
  const uint8_t *bytes = text + at;
  size_t left = count - at;
  if (left >= 16) {
    uint64_t found = 0;
    size_t last = left - 16;
    // Without a branch on the length, which the processor would guess wrong: short texts read their last 16 bytes again.
    for (size_t i = 0; i < 64; i += 16) {
      size_t from = i < last ? i : last;
      found |= of16(bytes + from, separator) << from;
    }
    return found;
  }
  if (count >= 16) return of16(text + count - 16, separator) >> (16 - left);
  if (left >= 8) return matches8(bytes, separator) | matches8(bytes + left - 8, separator) << (left - 8);
  uint64_t found = 0;
  for (size_t i = 0; i < left; i++) found |= (uint64_t)(bytes[i] == separator) << i;
  return found;
}

static inline __attribute__((always_inline)) mill_text_range field(
    const uint8_t *text, size_t count, uint8_t separator, size_t number, matcher of16) {
  size_t start = 0;
  for (size_t at = 0; at < count; at += 64) {
    uint64_t found = matches(text, count, at, separator, of16);
    if (found == 0 && count - at > 64) {
      // A long field: where the next one begins memchr finds sooner.
      const uint8_t *next = memchr(text + at + 64, separator, count - at - 64);
      if (next == NULL) break;
      at = (size_t)(next - text);
      found = matches(text, count, at, separator, of16);
    }
    for (; found != 0; found &= found - 1) {
      size_t hit = at + (size_t)__builtin_ctzll(found);
      if (number == 1) return (mill_text_range){start, hit};
      number--;
      start = hit + 1;
    }
  }
  return number == 1 ? (mill_text_range){start, count} : (mill_text_range){0, 0};
}

mill_text_range mill_text_field(const uint8_t *text, size_t count, uint8_t separator, size_t number) {
  return field(text, count, separator, number, matches16);
}

mill_text_range mill_text_field_portable(const uint8_t *text, size_t count, uint8_t separator, size_t number) {
  return field(text, count, separator, number, matches16_portable);
}
