// Records of CSV to columns.
//
// Place in the path: the readers of files cut records by `mill_csv_cut`; MillText's CSVRecordDecoder hands a chunk of them over, a batch at
// a time.
//
// Format: RFC 4180 with any one byte as delimiter. A value that begins with a quote ends with one; a quote in it is doubled; delimiters and
// newlines in it are its own. A quote anywhere else is a byte like others. Values without quotes are not copied: their views point into the
// input, and so do quoted ones without a doubled quote.
//
// NULL is a value of no bytes without quotes; `""` is an empty text or bytea, and NULL of any other type.
//
// Acceptance depends on the record alone: fields are checked the same whether wanted or not.

#include <simdjson.h>

#include <cstring>
#include <vector>

#include "CSVDecode.h"
#include "ValueReader.hpp"

namespace mill {

namespace {

constexpr uint8_t quote = '"';

inline uint64_t repeated(uint8_t byte) { return 0x0101010101010101ull * byte; }

/// The high bit of each zero byte; of the bytes above the lowest one it may be wrong.
inline uint64_t zero_bytes(uint64_t word) { return (word - 0x0101010101010101ull) & ~word & 0x8080808080808080ull; }

/// The first `byte` from `p` on, or `end`. May read 8 bytes behind it.
inline const uint8_t *find(const uint8_t *p, const uint8_t *end, uint8_t byte) {
  const uint64_t pattern = repeated(byte);
  for (; p < end; p += 8) {
    if (uint64_t found = zero_bytes(load64(p) ^ pattern)) {
      p += __builtin_ctzll(found) >> 3;
      return p < end ? p : end;
    }
  }
  return end;
}

inline const uint8_t *find_either(const uint8_t *p, const uint8_t *end, uint8_t a, uint8_t b) {
  const uint64_t first = repeated(a), second = repeated(b);
  for (; p < end; p += 8) {
    const uint64_t word = load64(p);
    if (uint64_t found = zero_bytes(word ^ first) | zero_bytes(word ^ second)) {
      p += __builtin_ctzll(found) >> 3;
      return p < end ? p : end;
    }
  }
  return end;
}

/// Behind the quote that closes the one at `open`, or nullptr; `doubled` when there are quotes between.
inline const uint8_t *closing_quote(const uint8_t *open, const uint8_t *end, bool &doubled) {
  const uint8_t *p = open + 1;
  while (true) {
    p = find(p, end, quote);
    if (p == end) return nullptr;
    if (p + 1 == end || p[1] != quote) return p;
    doubled = true;
    p += 2;
  }
}

/// The newline that ends the record at `p`, or nullptr.
const uint8_t *record_end(const uint8_t *p, const uint8_t *end, uint8_t delimiter) {
  while (p < end) {
    bool doubled = false;
    if (*p == quote) {
      p = closing_quote(p, end, doubled);
      if (!p) return nullptr;
    }
    p = find_either(p, end, delimiter, '\n');
    if (p == end) return nullptr;
    if (*p == '\n') return p;
    ++p;
  }
  return nullptr;
}

}  // namespace

class CSVDecoder : ValueReader {
 public:
  CSVDecoder(const mill_json_field *fields, uint32_t count, uint8_t delimiter) : fields_(count), unwanted_(64), delimiter_(delimiter) {
    for (uint32_t i = 0; i < count; ++i) fields_[i].declare(fields[i]);
  }

  void set_places(const int32_t *fields, uint32_t count) {
    places_.assign(fields, fields + count);
    missing_.clear();
    for (uint32_t i = 0; i < fields_.size(); ++i) {
      bool found = false;
      for (int32_t field : places_) found |= field == int32_t(i);
      if (!found) missing_.push_back(i);
    }
  }

  mill_json_progress decode(
      const mill_json_input &input, uint32_t first, uint32_t rows_max, size_t bytes_max, void *const *columns, uint32_t *row_records) {
    rejects_.clear();
    row_ = 0;
    for (size_t i = 0; i < fields_.size(); ++i) fields_[i].begin(rows_max, columns[i], unwanted_.data());
    // No further than what is found to be clean, also when refused records leave rows free.
    const uint32_t stop = input.count - first > rows_max ? first + rows_max : input.count;
    const bool clean = is_clean(input, first, stop);
    uint32_t next = first;
    size_t consumed = 0;
    for (; next < stop && (consumed < bytes_max || next == first); ++next) {
      record_ = next;
      if (input.lengths[next] < 0) {
        refuse_record(MILL_JSON_NULL_RECORD, nullptr, 0);
        continue;
      }
      const uint8_t *p = input.bytes + input.starts[next], *end = p + input.lengths[next];
      consumed += size_t(end - p) + 1;
      made_null_ = false;
      const size_t rejects_before = rejects_.size();
      uint32_t reason = clean ? MILL_JSON_OK : text_problem(p, size_t(end - p));
      if (reason == MILL_JSON_OK) reason = read_record(p, end);
      if (reason == MILL_JSON_OK) {
        for (uint32_t field : missing_) fields_[field].set_null(row_);
        row_records[row_++] = next;
        continue;
      }
      rejects_.resize(rejects_before);
      if (made_null_) for (FieldState &field : fields_) field.unset_null(row_);
      refuse_record(reason, p, uint32_t(end - p));
    }
    return {row_, next};
  }

  const std::vector<mill_json_reject> &rejects() const { return rejects_; }
  const FieldState &field(uint32_t index) const { return fields_[index]; }
  void *take_arena() { return arena_.release(); }

 private:
  static uint32_t text_problem(const uint8_t *p, size_t length) {
    if (length != 0 && std::memchr(p, 0, length)) return MILL_CSV_ZERO_BYTE;
    return simdjson::validate_utf8(reinterpret_cast<const char *>(p), length) ? MILL_JSON_OK : MILL_JSON_INVALID_UTF8;
  }

  /// Whether all records from `first` up to `stop` are text, found out at once.
  static bool is_clean(const mill_json_input &input, uint32_t first, uint32_t stop) {
    if (first >= stop) return true;
    const uint32_t last = stop - 1;
    if (input.lengths[last] < 0 || input.starts[last] < input.starts[first]) return false;
    return text_problem(input.bytes + input.starts[first], input.starts[last] - input.starts[first] + size_t(input.lengths[last])) == MILL_JSON_OK;
  }

  uint32_t read_record(const uint8_t *p, const uint8_t *end) {
    const uint32_t places = uint32_t(places_.size());
    for (uint32_t place = 0;; ++place) {
      if (place == places) return MILL_CSV_MORE_FIELDS;
      const uint8_t *text = p, *stop;
      bool doubled = false;
      const bool quoted = p < end && *p == quote;
      if (quoted) {
        stop = closing_quote(p, end, doubled);
        if (!stop) return MILL_CSV_UNCLOSED_QUOTE;
        ++text;
        p = stop + 1;
        if (p < end && *p != delimiter_) return MILL_CSV_AFTER_QUOTE;
      } else {
        p = stop = find(p, end, delimiter_);
      }
      if (places_[place] >= 0) take(places_[place], text, uint32_t(stop - text), quoted, doubled);
      if (p == end) return place + 1 == places ? MILL_JSON_OK : MILL_CSV_FEWER_FIELDS;
      ++p;
    }
  }

  void take(int32_t index, const uint8_t *text, uint32_t length, bool quoted, bool doubled) {
    FieldState &field = fields_[index];
    if (length == 0 && !(quoted && (field.kind == MILL_JSON_VARCHAR || field.kind == MILL_JSON_BYTEA))) return set_null(field);
    const uint8_t *raw = text;
    const uint32_t raw_length = length;
    if (doubled) {
      uint8_t *out = arena_.reserve(length + 16);
      uint32_t written = 0;
      for (uint32_t i = 0; i < length; ++i) {
        out[written++] = text[i];
        i += text[i] == quote;
      }
      arena_.commit(written + 16);
      text = out;
      length = written;
    }
    uint32_t reason = convert(field, text, length, field.slot(row_));
    if (reason == MILL_JSON_OK) return;
    set_null(field);
    rejects_.push_back({record_, index, reason, raw_length, raw});
  }

  uint32_t convert(const FieldState &field, const uint8_t *text, uint32_t length, uint8_t *out) {
    switch (field.kind) {
      case MILL_JSON_VARCHAR:
      case MILL_JSON_RAW: store(out, make_view(text, length)); return MILL_JSON_OK;
      case MILL_JSON_INT64:
      case MILL_JSON_INT32: {
        const bool negative = *text == '-';
        uint64_t value;
        if (!fast_digits(text + negative, length - negative, value)) break;
        const int64_t number = negative ? -int64_t(value) : int64_t(value);
        if (field.kind == MILL_JSON_INT64) store(out, number);
        else if (number == int32_t(number)) store(out, int32_t(number));
        else return MILL_JSON_OUT_OF_RANGE;
        return MILL_JSON_OK;
      }
      case MILL_JSON_BOOL: {
        const bool yes = same_word(text, length, "t") || same_word(text, length, "1");
        if (!yes && !same_word(text, length, "f") && !same_word(text, length, "0")) break;
        store(out, uint8_t(yes));
        return MILL_JSON_OK;
      }
      default: break;
    }
    return convert_text(field, text, length, out);
  }

  void set_null(FieldState &field) {
    field.set_null(row_);
    made_null_ = true;
  }

  void refuse_record(uint32_t reason, const uint8_t *raw, uint32_t length) { rejects_.push_back({record_, -1, reason, length, raw}); }

  std::vector<FieldState> fields_;
  /// Of each place in a record its field, or -1.
  std::vector<int32_t> places_;
  std::vector<uint32_t> missing_;
  std::vector<mill_json_reject> rejects_;
  std::vector<uint8_t> unwanted_;
  const uint8_t delimiter_;
  uint32_t record_ = 0;
  uint32_t row_ = 0;
  bool made_null_ = false;
};

}  // namespace mill

struct mill_csv_decoder : mill::CSVDecoder {
  using CSVDecoder::CSVDecoder;
};

extern "C" {

uint32_t mill_csv_cut(
    const uint8_t *bytes, size_t length, uint8_t delimiter, bool is_last, uint32_t count_max, size_t bytes_max, uint32_t *starts,
    int32_t *lengths, size_t *consumed) {
  const uint8_t *p = bytes, *const end = bytes + length;
  const uint8_t *next_quote = mill::find(p, end, mill::quote);
  uint32_t count = 0;
  while (p < end && count < count_max && (count == 0 || size_t(p - bytes) < bytes_max)) {
    const uint8_t *newline = static_cast<const uint8_t *>(std::memchr(p, '\n', size_t(end - p)));
    if (next_quote < p) next_quote = mill::find(p, end, mill::quote);
    // Only a record with a quote may have a newline that is its own.
    if (newline && next_quote < newline) newline = mill::record_end(p, end, delimiter);
    if (!newline && !is_last) break;
    const uint8_t *stop = newline ? newline : end;
    if (!newline && stop > p && stop[-1] == '\n') --stop;
    if (stop > p && stop[-1] == '\r') --stop;
    if (stop > p) {
      starts[count] = uint32_t(p - bytes);
      lengths[count++] = int32_t(stop - p);
    }
    p = newline ? newline + 1 : end;
  }
  *consumed = size_t(p - bytes);
  return count;
}

mill_csv_decoder *mill_csv_decoder_create(const mill_json_field *fields, uint32_t count, uint8_t delimiter) {
  return new mill_csv_decoder(fields, count, delimiter);
}
void mill_csv_decoder_destroy(mill_csv_decoder *decoder) { delete decoder; }
void mill_csv_set_places(mill_csv_decoder *decoder, const int32_t *fields, uint32_t count) { decoder->set_places(fields, count); }

mill_json_progress mill_csv_decode(
    mill_csv_decoder *decoder, const mill_json_input *input, uint32_t first, uint32_t rows_max, size_t bytes_max, void *const *columns,
    uint32_t *row_records) {
  return decoder->decode(*input, first, rows_max, bytes_max, columns, row_records);
}

const uint64_t *mill_csv_validity(const mill_csv_decoder *decoder, uint32_t field) {
  const mill::FieldState &state = decoder->field(field);
  return state.has_null ? state.validity.data() : nullptr;
}

const mill_json_reject *mill_csv_rejects(const mill_csv_decoder *decoder, uint32_t *count) {
  *count = uint32_t(decoder->rejects().size());
  return decoder->rejects().data();
}

void *mill_csv_take_arena(mill_csv_decoder *decoder) { return decoder->take_arena(); }

}
