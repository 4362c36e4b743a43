#pragma once
// Dates and times of day from text. The usual form of a timestamp is read by whole words with its day cached; everything else by
// the general reader, which accepts what PostgreSQL does of ISO 8601.

#include <cstdint>
#include <cstring>

#include "Bytes.hpp"
#include "CJSONDecode.h"

namespace mill {

constexpr int64_t micros_per_day = 86400000000ll;
/// A timestamp ends where MillColumnar's do, in the last year that microseconds since 1970 reach; a date before 5874898-01-01, as
/// PostgreSQL's. Both begin with year 1 here.
constexpr int64_t timestamp_year_max = 294247;
constexpr int64_t timestamp_end = 9223371331200000000ll;
constexpr int64_t date_year_max = 5874897;

inline int64_t days_from_civil(int64_t year, int month, int day) {
  year -= month <= 2;
  int64_t era = year / 400;
  int64_t of_era = year - era * 400;
  int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

inline bool on_calendar(int64_t year, int month, int day) {
  static const uint8_t lengths[13] = {0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (month < 1 || month > 12 || day < 1) return false;
  bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return day <= lengths[month] + (month == 2 && leap);
}

/// A place in a text; reads never pass its end.
struct Cursor {
  const uint8_t *p;
  const uint8_t *end;

  bool done() const { return p == end; }
  bool at(uint8_t c) const { return p != end && *p == c; }
  bool take(uint8_t c) { return at(c) ? (++p, true) : false; }
  void skip_spaces() { while (p != end && is_space(*p)) ++p; }
  /// Between `least` and `most` digits, or -1.
  int64_t number(int least, int most) {
    int64_t value = 0;
    int count = 0;
    while (p != end && count < most && is_digit(*p)) { value = value * 10 + (*p++ - '0'); ++count; }
    return count < least ? -1 : value;
  }
};

inline bool same_word(const uint8_t *text, size_t length, const char *word) {
  size_t count = std::strlen(word);
  if (length != count) return false;
  for (size_t i = 0; i < count; ++i) if (lower(text[i]) != uint8_t(word[i])) return false;
  return true;
}

/// 0: not an infinity; 1, -1: that one.
inline int infinity_sign(const uint8_t *text, size_t length) {
  if (length < 8) return 0;
  if (same_word(text, length, "infinity") || same_word(text, length, "+infinity")) return 1;
  return same_word(text, length, "-infinity") ? -1 : 0;
}

inline uint32_t read_date(Cursor &c, int64_t year_max, int64_t &days) {
  int64_t year = c.number(4, 7);
  if (year < 0 || !c.take('-')) return MILL_JSON_BAD_TEXT;
  int64_t month = c.number(1, 2);
  if (month < 0 || !c.take('-')) return MILL_JSON_BAD_TEXT;
  int64_t day = c.number(1, 2);
  if (day < 0) return MILL_JSON_BAD_TEXT;
  if (year < 1 || !on_calendar(year, int(month), int(day))) return MILL_JSON_NOT_ON_CALENDAR;
  if (year > year_max) return MILL_JSON_OUT_OF_RANGE;
  days = days_from_civil(year, int(month), int(day));
  return MILL_JSON_OK;
}

/// HH:MM[:SS[.f...]] with up to 24:00:00 and second 60, as PostgreSQL; the seventh digit of a fraction rounds.
inline uint32_t read_time(Cursor &c, int64_t &micros) {
  int64_t hour = c.number(1, 2);
  if (hour < 0 || !c.take(':')) return MILL_JSON_BAD_TEXT;
  int64_t minute = c.number(2, 2), second = 0, fraction = 0;
  if (minute < 0) return MILL_JSON_BAD_TEXT;
  if (c.take(':')) {
    second = c.number(2, 2);
    if (second < 0) return MILL_JSON_BAD_TEXT;
    if (c.take('.') || c.take(',')) {
      if (c.done() || !is_digit(*c.p)) return MILL_JSON_BAD_TEXT;
      int count = 0;
      for (; !c.done() && is_digit(*c.p); ++c.p, ++count) {
        if (count < 6) fraction = fraction * 10 + (*c.p - '0');
        else if (count == 6 && *c.p >= '5') ++fraction;
      }
      for (; count < 6; ++count) fraction *= 10;
    }
  }
  if (hour > 24 || minute > 59 || second > 60) return MILL_JSON_NOT_ON_CALENDAR;
  micros = ((hour * 60 + minute) * 60 + second) * 1000000 + fraction;
  return micros > micros_per_day ? MILL_JSON_NOT_ON_CALENDAR : MILL_JSON_OK;
}

/// Nothing, Z, UTC, GMT, +hh, +hhmm, +hh:mm, +hh:mm:ss: the offset in microseconds.
inline uint32_t read_offset(Cursor &c, int64_t &offset) {
  offset = 0;
  c.skip_spaces();
  if (c.done()) return MILL_JSON_OK;
  size_t left = size_t(c.end - c.p);
  if (same_word(c.p, left, "z") || same_word(c.p, left, "utc") || same_word(c.p, left, "gmt")) {
    c.p = c.end;
    return MILL_JSON_OK;
  }
  bool negative = c.at('-');
  if (!negative && !c.at('+')) return MILL_JSON_BAD_TEXT;
  ++c.p;
  int64_t hour = c.number(1, 2), minute = 0, second = 0;
  if (hour < 0) return MILL_JSON_BAD_TEXT;
  if (c.take(':')) {
    minute = c.number(2, 2);
    if (minute >= 0 && c.take(':')) second = c.number(2, 2);
  } else if (!c.done()) {
    minute = c.number(2, 2);
  }
  if (minute < 0 || second < 0 || !c.done()) return MILL_JSON_BAD_TEXT;
  if (hour > 15 || minute > 59 || second > 59) return MILL_JSON_OUT_OF_RANGE;
  offset = ((hour * 60 + minute) * 60 + second) * 1000000 * (negative ? -1 : 1);
  return MILL_JSON_OK;
}

inline Cursor trimmed(const uint8_t *text, size_t length) {
  while (length && is_space(*text)) { ++text; --length; }
  while (length && is_space(text[length - 1])) --length;
  return {text, text + length};
}

inline uint32_t parse_timestamp(const uint8_t *text, size_t length, int64_t &micros) {
  Cursor c = trimmed(text, length);
  if (int sign = infinity_sign(c.p, size_t(c.end - c.p))) {
    micros = sign > 0 ? INT64_MAX : INT64_MIN;
    return MILL_JSON_OK;
  }
  int64_t days = 0, time = 0, offset = 0;
  if (uint32_t reason = read_date(c, timestamp_year_max, days)) return reason;
  if (!c.done() && (*c.p == 'T' || *c.p == 't' || *c.p == ' ')) {
    ++c.p;
    c.skip_spaces();
    if (!c.done()) {
      if (uint32_t reason = read_time(c, time)) return reason;
    }
  }
  if (uint32_t reason = read_offset(c, offset)) return reason;
  if (!c.done()) return MILL_JSON_BAD_TEXT;
  bool overflow = __builtin_mul_overflow(days, micros_per_day, &micros) || __builtin_add_overflow(micros, time - offset, &micros);
  return overflow || micros >= timestamp_end ? MILL_JSON_OUT_OF_RANGE : MILL_JSON_OK;
}

/// A date, or the date of a timestamp's text.
inline uint32_t parse_date(const uint8_t *text, size_t length, int32_t &days) {
  Cursor c = trimmed(text, length);
  if (int sign = infinity_sign(c.p, size_t(c.end - c.p))) {
    days = sign > 0 ? INT32_MAX : INT32_MIN;
    return MILL_JSON_OK;
  }
  int64_t found = 0, time = 0, offset = 0;
  if (uint32_t reason = read_date(c, date_year_max, found)) return reason;
  if (!c.done()) {
    if (*c.p != 'T' && *c.p != 't' && *c.p != ' ') return MILL_JSON_BAD_TEXT;
    ++c.p;
    c.skip_spaces();
    if (uint32_t reason = read_time(c, time)) return reason;
    if (uint32_t reason = read_offset(c, offset)) return reason;
    if (!c.done()) return MILL_JSON_BAD_TEXT;
  }
  days = int32_t(found);
  return MILL_JSON_OK;
}

inline uint32_t parse_time(const uint8_t *text, size_t length, int64_t &micros) {
  Cursor c = trimmed(text, length);
  if (uint32_t reason = read_time(c, micros)) return reason;
  return c.done() ? MILL_JSON_OK : MILL_JSON_BAD_TEXT;
}

/// Reads `YYYY-MM-DD?HH:MM:SS[.f{1,8}][Z]` by words; remembers the last day. Anything else goes to `parse_timestamp`.
class TimestampReader {
 public:
  /// `text` has 16 readable bytes after its end.
  uint32_t read(const uint8_t *text, uint32_t length, int64_t &micros) {
    if (length >= 19 && load64(text) == day_low_ && load16(text + 8) == day_high_ && (text[10] == 'T' || text[10] == ' ')) {
      // hh:mm:ss: digits, a colon at bytes 2 and 5.
      uint64_t clock = load64(text + 11);
      constexpr uint64_t colons = 0x00003A00003A0000ull, mask = 0x0000FF0000FF0000ull;
      uint64_t digits = (clock & ~mask) | (zeros & mask);
      if ((clock & mask) == colons && eight_digits(digits)) {
        uint64_t d = digits - zeros;
        unsigned hour = unsigned(d & 15) * 10 + unsigned(d >> 8 & 15);
        unsigned minute = unsigned(d >> 24 & 15) * 10 + unsigned(d >> 32 & 15);
        unsigned second = unsigned(d >> 48 & 15) * 10 + unsigned(d >> 56 & 15);
        uint32_t rest = length - 19 - (text[length - 1] == 'Z');
        if (hour < 24 && minute < 60 && second < 60) {
          int64_t base = day_micros_ + int64_t((hour * 60 + minute) * 60 + second) * 1000000;
          if (rest == 0) {
            micros = base;
            return MILL_JSON_OK;
          }
          if (rest <= 9 && rest >= 2 && text[19] == '.') {
            uint64_t keep = low_bytes(rest - 1);
            uint64_t fraction = (load64(text + 20) & keep) | (zeros & ~keep);
            if (eight_digits(fraction)) {
              micros = base + (parse_eight(fraction) + 50) / 100;
              return MILL_JSON_OK;
            }
          }
        }
      }
    }
    uint32_t reason = parse_timestamp(text, length, micros);
    if (reason == MILL_JSON_OK) remember(text, length);
    return reason;
  }

 private:
  void remember(const uint8_t *text, uint32_t length) {
    if (length < 10 || text[4] != '-' || text[7] != '-' || !is_digit(text[8]) || !is_digit(text[9])) return;
    Cursor c{text, text + 10};
    int64_t days = 0;
    if (read_date(c, timestamp_year_max, days) != MILL_JSON_OK || !c.done()) return;
    day_low_ = load64(text);
    day_high_ = load16(text + 8);
    day_micros_ = days * micros_per_day;
  }

  uint64_t day_low_ = 0;
  uint16_t day_high_ = 0;
  int64_t day_micros_ = 0;
};

}  // namespace mill
