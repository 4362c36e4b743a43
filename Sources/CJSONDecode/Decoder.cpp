#include "Decoder.hpp"

#include <algorithm>
#include <cstring>

#include "Strings.hpp"

namespace mill {

namespace {

constexpr uint32_t window_bytes = 64 << 10;
constexpr uint32_t places_max = 128;

std::string fold(const std::string &name) {
  std::string folded = name;
  for (char &c : folded) c = char(lower(uint8_t(c)));
  return folded;
}

uint32_t reason_of(StructuralIndex::Status status) {
  switch (status) {
    case StructuralIndex::Status::invalid_utf8: return MILL_JSON_INVALID_UTF8;
    case StructuralIndex::Status::control_character: return MILL_JSON_CONTROL_CHARACTER;
    case StructuralIndex::Status::unclosed_string: return MILL_JSON_UNCLOSED_STRING;
    default: return MILL_JSON_MALFORMED;
  }
}

}  // namespace

Decoder::Decoder(const mill_json_field *fields, uint32_t count) : fields_(count), expectations_(places_max) {
  for (uint32_t i = 0; i < count; ++i) {
    FieldState &field = fields_[i];
    field.declare(fields[i]);
    field.name.assign(fields[i].name, fields[i].name_length);
    field.folded = fold(field.name);
  }
}

void Decoder::begin(uint32_t rows_max, void *const *columns) {
  rejects_.clear();
  row_ = 0;
  if (unwanted_.empty()) unwanted_.resize(64);
  for (size_t i = 0; i < fields_.size(); ++i) fields_[i].begin(rows_max, columns[i], unwanted_.data());
}

mill_json_progress Decoder::decode(
    const mill_json_input &input, uint32_t first, uint32_t rows_max, size_t bytes_max, void *const *columns, uint32_t *row_records) {
  begin(rows_max, columns);
  uint32_t next = first;
  size_t consumed = 0;
  while (next < input.count && row_ < rows_max && (consumed < bytes_max || next == first)) {
    if (input.lengths[next] < 0) {
      refuse_record(next++, MILL_JSON_NULL_RECORD, nullptr, 0);
      continue;
    }
    size_t limit = std::min<size_t>(window_bytes, bytes_max - std::min(consumed, bytes_max));
    uint32_t placed = place_window(input, next, rows_max - row_, limit);
    if (placed == 0) placed = copy_window(input, next, rows_max - row_, limit);
    consumed += placed_[placed - 1].end - placed_[0].start;
    next = placed_[placed - 1].record + 1;
    decode_placed(placed_.data(), placed, row_records);
  }
  return {row_, next};
}

/// Takes records that lie one after the other with nothing but white space and a newline between; 0 if the first is not followed
/// by one.
uint32_t Decoder::place_window(const mill_json_input &input, uint32_t first, uint32_t records_max, size_t bytes_max) {
  placed_.clear();
  const uint32_t base = input.starts[first];
  bytes_ = input.bytes + base;
  for (uint32_t i = first; i < input.count && placed_.size() < records_max; ++i) {
    if (input.lengths[i] < 0) break;
    uint32_t start = input.starts[i], end = start + uint32_t(input.lengths[i]);
    if (!placed_.empty()) {
      uint32_t last = placed_.back().end + base;
      if (end - base > bytes_max || start <= last) break;
      bool blank = true;
      for (uint32_t gap = last + 1; gap < start && blank; ++gap) blank = gap - last < 64 && is_space(input.bytes[gap]);
      if (!blank) break;
    }
    uint8_t after = input.bytes[end];
    if (after != '\n' && !(after == '\r' && input.bytes[end + 1] == '\n')) break;
    placed_.push_back({i, start - base, end - base});
  }
  return uint32_t(placed_.size());
}

/// Copies records into the arena, a newline after each.
uint32_t Decoder::copy_window(const mill_json_input &input, uint32_t first, uint32_t records_max, size_t bytes_max) {
  placed_.clear();
  size_t total = 0;
  uint32_t last = first;
  for (; last < input.count && last - first < records_max && input.lengths[last] >= 0; ++last) {
    size_t length = size_t(input.lengths[last]) + 1;
    if (last != first && total + length > bytes_max) break;
    total += length;
  }
  uint8_t *out = arena_.reserve(total);
  bytes_ = out;
  for (uint32_t i = first; i < last; ++i) {
    uint32_t length = uint32_t(input.lengths[i]), start = uint32_t(out - bytes_);
    std::memcpy(out, input.bytes + input.starts[i], length);
    out[length] = '\n';
    out += length + 1;
    placed_.push_back({i, start, start + length});
  }
  arena_.commit(total);
  return last - first;
}

void Decoder::decode_placed(const Placed *placed, uint32_t count, uint32_t *row_records) {
  const uint8_t *window = bytes_;
  const uint32_t base = placed[0].start, length = placed[count - 1].end - base;
  StructuralIndex::Status status = index_.scan(window + base, length);
  if (status == StructuralIndex::Status::ok) {
    bytes_ = window + base;
    tokens_ = index_.positions();
    escapes_ = has_backslash(bytes_, length);
    walk_all(placed, count, base, row_records);
    bytes_ = window;
    return;
  }
  if (count == 1) {
    refuse_record(placed[0].record, reason_of(status), window + base, length);
    return;
  }
  const uint32_t step = (count + 7) / 8;
  for (uint32_t from = 0; from < count; from += step) decode_placed(placed + from, std::min(step, count - from), row_records);
}

void Decoder::walk_all(const Placed *placed, uint32_t count, uint32_t base, uint32_t *row_records) {
  uint32_t token = 0;
  const uint32_t tokens = index_.count();
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t start = placed[i].start - base, end = placed[i].end - base, first = token;
    ++serial_;
    set_fields_ = 0;
    made_null_ = false;
    record_ = placed[i].record;
    const size_t rejects_before = rejects_.size();
    if (walk_record(token, end)) {
      if (set_fields_ != fields_.size()) {
        for (FieldState &field : fields_) if (field.stamp >> 1 != serial_) set_null(field);
      }
      row_records[row_++] = record_;
      continue;
    }
    rejects_.resize(rejects_before);
    if (made_null_) {
      for (FieldState &field : fields_) field.unset_null(row_);
    }
    refuse_record(record_, reason_, bytes_ + start, end - start);
    // The walk may have run on into the next record: go on with its first token.
    token = first;
    while (token < tokens && tokens_[token] < end) ++token;
  }
}

void Decoder::set_null(FieldState &field) {
  field.set_null(row_);
  made_null_ = true;
}

void Decoder::refuse_value(FieldState &field, int32_t index, uint32_t reason, const uint8_t *raw, uint32_t length) {
  set_null(field);
  rejects_.push_back({record_, index, reason, length, raw});
}

void Decoder::refuse_record(uint32_t record, uint32_t reason, const uint8_t *raw, uint32_t length) {
  rejects_.push_back({record, -1, reason, length, raw});
}

}  // namespace mill

struct mill_json_decoder : mill::Decoder {
  using Decoder::Decoder;
};

extern "C" {

mill_json_decoder *mill_json_decoder_create(const mill_json_field *fields, uint32_t count) { return new mill_json_decoder(fields, count); }
void mill_json_decoder_destroy(mill_json_decoder *decoder) { delete decoder; }

mill_json_progress mill_json_decode(
    mill_json_decoder *decoder, const mill_json_input *input, uint32_t first, uint32_t rows_max, size_t bytes_max, void *const *columns,
    uint32_t *row_records) {
  return decoder->decode(*input, first, rows_max, bytes_max, columns, row_records);
}

const uint64_t *mill_json_validity(const mill_json_decoder *decoder, uint32_t field) {
  const mill::FieldState &state = decoder->field(field);
  return state.has_null ? state.validity.data() : nullptr;
}

const mill_json_reject *mill_json_rejects(const mill_json_decoder *decoder, uint32_t *count) {
  *count = uint32_t(decoder->rejects().size());
  return decoder->rejects().data();
}

void *mill_json_take_arena(mill_json_decoder *decoder) { return decoder->arena().release(); }
void mill_json_free_arena(void *arena) { mill::Arena::free_blocks(static_cast<mill::Arena::Block *>(arena)); }

uint32_t mill_json_parse_timestamp(const uint8_t *text, size_t length, int64_t *micros) { return mill::parse_timestamp(text, length, *micros); }
uint32_t mill_json_parse_date(const uint8_t *text, size_t length, int32_t *days) { return mill::parse_date(text, length, *days); }
uint32_t mill_json_parse_time(const uint8_t *text, size_t length, int64_t *micros) { return mill::parse_time(text, length, *micros); }

}
