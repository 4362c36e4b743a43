#pragma once
// Numbers from text: exact decimals, and integers and floats by way of them where the fast readers give up.

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "Bytes.hpp"
#include "CJSONDecode.h"
#include "Calendar.hpp"

namespace mill {

using u128 = unsigned __int128;

/// A column's numeric value, as MillColumnar's Decimal.
struct DecimalValue {
  uint64_t low;
  int64_t high;
  int32_t scale;
  int32_t kind;  // 0 finite, 1 infinity, 2 minus infinity, 3 NaN
};

/// The end of a JSON number that starts at `p`, or nullptr when its grammar is broken. Stops at any other byte, so the text needs
/// none at its end but the slack.
inline const uint8_t *json_number_end(const uint8_t *p) {
  if (*p == '-') ++p;
  if (*p == '0') ++p;
  else if (is_digit(*p)) { do ++p; while (is_digit(*p)); }
  else return nullptr;
  if (*p == '.') {
    if (!is_digit(*++p)) return nullptr;
    do ++p; while (is_digit(*p));
  }
  if (*p == 'e' || *p == 'E') {
    ++p;
    if (*p == '+' || *p == '-') ++p;
    if (!is_digit(*p)) return nullptr;
    do ++p; while (is_digit(*p));
  }
  return p;
}

/// A decimal as read: sign, up to 38 significant digits, a power of ten.
struct ReadDecimal {
  u128 digits = 0;
  /// Significant digits in `digits`.
  int count = 0;
  /// The value is `digits` times ten to this.
  int64_t exponent = 0;
  bool negative = false;
};

constexpr u128 ten_to_38 = u128(10000000000000000000ull) * 10000000000000000000ull;

/// Reads `[+-]digits[.digits][e[+-]digits]`; more lenient than JSON: `+1`, `.5` and `5.` are fine, as in PostgreSQL.
inline uint32_t read_decimal(const uint8_t *text, size_t length, ReadDecimal &value) {
  Cursor c = trimmed(text, length);
  value = ReadDecimal{};
  value.negative = c.at('-');
  if (value.negative || c.at('+')) ++c.p;
  bool any = false, point = false;
  // Zeros that may turn out to be trailing ones: they cost no digit until another digit follows.
  int64_t pending = 0;
  for (; !c.done(); ++c.p) {
    if (*c.p == '.' && !point) { point = true; continue; }
    if (!is_digit(*c.p)) break;
    any = true;
    if (point) --value.exponent;
    unsigned digit = *c.p - '0';
    if (digit == 0) {
      if (value.count > 0) ++pending;
      continue;
    }
    if (value.count + pending + 1 > 38) return MILL_JSON_OUT_OF_RANGE;
    for (; pending > 0; --pending, ++value.count) value.digits *= 10;
    value.digits = value.digits * 10 + digit;
    ++value.count;
  }
  if (!any) return MILL_JSON_BAD_TEXT;
  value.exponent += pending;
  if (!c.done() && (*c.p == 'e' || *c.p == 'E')) {
    ++c.p;
    bool negative = c.at('-');
    if (negative || c.at('+')) ++c.p;
    if (c.done() || !is_digit(*c.p)) return MILL_JSON_BAD_TEXT;
    int64_t power = 0;
    for (; !c.done() && is_digit(*c.p); ++c.p) if (power < 1000000) power = power * 10 + (*c.p - '0');
    value.exponent += negative ? -power : power;
  }
  if (!c.done()) return MILL_JSON_BAD_TEXT;
  if (value.digits == 0) value.exponent = 0;
  return MILL_JSON_OK;
}

/// A decimal that is a whole number within Int64.
inline uint32_t decimal_to_int64(ReadDecimal value, int64_t &result) {
  if (value.exponent < 0) return MILL_JSON_NOT_INTEGRAL;  // `digits` never ends in zero, so there is a fraction
  if (value.count + value.exponent > 19) return MILL_JSON_OUT_OF_RANGE;
  u128 magnitude = value.digits;
  for (int64_t i = 0; i < value.exponent; ++i) magnitude *= 10;
  if (magnitude > u128(INT64_MAX) + (value.negative ? 1 : 0)) return MILL_JSON_OUT_OF_RANGE;
  result = value.negative ? int64_t(0 - uint64_t(magnitude)) : int64_t(magnitude);
  return MILL_JSON_OK;
}

/// Up to 16 digits by two words. False for anything else, and for a leading zero, which takes the long way.
[[gnu::always_inline]] inline bool fast_digits(const uint8_t *digits, uint32_t count, uint64_t &value) {
  if (count - 1 >= 16 || (*digits == '0' && count != 1)) return false;
  if (count <= 8) {
    const unsigned shift = 64 - 8 * count;
    uint64_t word = (load64(digits) << shift) | (zeros & low_bytes(8 - count));
    value = parse_eight(word);
    return eight_digits(word);
  }
  const unsigned missing = 16 - count;
  uint64_t high = (load64(digits) << (8 * missing % 64)) | (zeros & low_bytes(missing));
  uint64_t low = load64(digits + count - 8);
  value = uint64_t(parse_eight(high)) * 100000000ull + parse_eight(low);
  return eight_digits(high) && eight_digits(low);
}

inline uint32_t parse_int64(const uint8_t *text, size_t length, int64_t &result) {
  ReadDecimal value;
  if (uint32_t reason = read_decimal(text, length, value)) return reason;
  return decimal_to_int64(value, result);
}

/// 0: a number or nonsense; 1, 2, 3: the decimal kinds infinity, minus infinity, NaN.
inline int special_number(const uint8_t *text, size_t length) {
  Cursor c = trimmed(text, length);
  size_t count = size_t(c.end - c.p);
  if (count < 3 || count > 9) return 0;
  if (same_word(c.p, count, "nan")) return 3;
  if (same_word(c.p, count, "inf") || same_word(c.p, count, "+inf")) return 1;
  if (same_word(c.p, count, "-inf")) return 2;
  int sign = infinity_sign(c.p, count);
  return sign > 0 ? 1 : sign < 0 ? 2 : 0;
}

/// How many fraction digits the text writes, so that 1.50 keeps its scale of 2.
inline int64_t written_scale(const uint8_t *text, size_t length) {
  int64_t scale = 0, power = 0;
  bool point = false;
  for (size_t i = 0; i < length; ++i) {
    if (text[i] == '.') point = true;
    else if (is_digit(text[i])) scale += point;
    else if (text[i] == 'e' || text[i] == 'E') {
      bool negative = i + 1 < length && text[i + 1] == '-';
      for (++i; i < length; ++i) if (is_digit(text[i]) && power < 1000000) power = power * 10 + (text[i] - '0');
      if (negative) power = -power;
    }
  }
  return scale - power > 0 ? scale - power : 0;
}

/// Exact; rounded half away from zero only to a declared scale. 38 digits at most, declared or not.
inline uint32_t parse_numeric(const uint8_t *text, size_t length, int precision, int scale, DecimalValue &result) {
  if (int kind = special_number(text, length)) {
    result = {0, 0, 0, kind};
    return precision >= 0 && kind != 3 ? MILL_JSON_OUT_OF_RANGE : MILL_JSON_OK;
  }
  ReadDecimal value;
  if (uint32_t reason = read_decimal(text, length, value)) return reason;
  int64_t wanted = scale;
  if (precision < 0) {
    wanted = written_scale(text, length);
    // Trailing zeros beyond what 38 digits can hold are dropped; digits never are.
    int64_t needed = value.exponent < 0 ? -value.exponent : 0;
    int64_t room = 38 - (value.count + value.exponent > 0 ? value.count + value.exponent : 0);
    if (needed > 38) return MILL_JSON_OUT_OF_RANGE;
    if (wanted > room) wanted = needed > room ? needed : room;
    if (wanted < 0) wanted = 0;
  }
  u128 digits = value.digits;
  int64_t shift = value.exponent + wanted;
  if (value.digits != 0 && shift > 0) {
    if (value.count + shift > 38) return MILL_JSON_OUT_OF_RANGE;
    for (; shift > 0; --shift) digits *= 10;
  } else if (shift < 0) {
    if (shift < -39) digits = 0;
    else {
      unsigned last = 0;
      for (; shift < 0; ++shift) { last = unsigned(digits % 10); digits /= 10; }
      if (last >= 5) ++digits;
    }
  }
  u128 bound = ten_to_38;
  if (precision >= 0) { bound = 1; for (int i = 0; i < precision; ++i) bound *= 10; }
  if (digits >= bound) return MILL_JSON_OUT_OF_RANGE;
  if (value.negative) digits = 0 - digits;
  result = {uint64_t(digits), int64_t(uint64_t(digits >> 64)), int32_t(wanted), 0};
  return MILL_JSON_OK;
}

template <typename T>
inline uint32_t parse_float(const uint8_t *text, size_t length, T &result) {
  if (int kind = special_number(text, length)) {
    result = kind == 3 ? T(NAN) : kind == 1 ? T(INFINITY) : T(-INFINITY);
    return MILL_JSON_OK;
  }
  Cursor c = trimmed(text, length);
  if (c.at('+')) ++c.p;
  const char *first = reinterpret_cast<const char *>(c.p), *last = reinterpret_cast<const char *>(c.end);
  const char *digits = first != last && *first == '-' ? first + 1 : first;
  if (digits == last || !(is_digit(uint8_t(*digits)) || *digits == '.')) return MILL_JSON_BAD_TEXT;
  auto read = std::from_chars(first, last, result);
  if (read.ec == std::errc::invalid_argument || read.ptr != last) return MILL_JSON_BAD_TEXT;
  if (read.ec == std::errc::result_out_of_range) {
    // Too large is refused; too small is zero or the nearest denormal.
    std::string copy(first, last);
    double value = std::strtod(copy.c_str(), nullptr);
    if (!(std::fabs(value) < 1)) return MILL_JSON_OUT_OF_RANGE;
    result = T(value);
  }
  return MILL_JSON_OK;
}

/// An epoch number: its magnitude tells the unit, as in RisingWave. Under 1e11 seconds, under 1e14 milliseconds, under 1e17
/// microseconds, else nanoseconds (right for 1973-03-03 to 5138-11-16). A fraction counts; beyond microseconds it is cut off.
inline uint32_t parse_epoch(const uint8_t *text, size_t length, int64_t &micros) {
  ReadDecimal value;
  if (uint32_t reason = read_decimal(text, length, value)) return reason;
  if (value.count + value.exponent > 19) return MILL_JSON_OUT_OF_RANGE;
  auto scaled = [&](int64_t power) {  // the value times ten to `power`, cut
    u128 digits = value.digits;
    int64_t shift = value.exponent + power;
    for (; shift > 0; --shift) digits *= 10;
    for (; shift < 0 && digits != 0; ++shift) digits /= 10;
    return digits;
  };
  u128 whole = scaled(0);
  u128 magnitude = scaled(whole < 100000000000ull ? 6 : whole < 100000000000000ull ? 3 : whole < 100000000000000000ull ? 0 : -3);
  if (magnitude >= u128(timestamp_end)) return MILL_JSON_OUT_OF_RANGE;
  micros = value.negative ? -int64_t(magnitude) : int64_t(magnitude);
  return MILL_JSON_OK;
}

}  // namespace mill
