#include "StructuralIndex.hpp"

#include <simdjson.h>

#include <algorithm>
#include <string>

namespace mill {

struct StructuralIndex::Implementation {
  std::unique_ptr<simdjson::internal::dom_parser_implementation> parser;
  size_t capacity = 0;

  bool reserve(size_t length) {
    if (parser && capacity >= length) return true;
    size_t wanted = std::max<size_t>(length + length / 2, 128 << 10);
    parser.reset();
    capacity = 0;
    if (simdjson::get_active_implementation()->create_dom_parser_implementation(wanted, 1, parser) != simdjson::SUCCESS) return false;
    capacity = wanted;
    return true;
  }
};

StructuralIndex::StructuralIndex() : implementation_(new Implementation) {}
StructuralIndex::~StructuralIndex() = default;

StructuralIndex::Status StructuralIndex::scan(const uint8_t *bytes, size_t length) {
  empty_[0] = uint32_t(length);
  positions_ = empty_;
  count_ = 0;
  if (length == 0) return Status::ok;
  if (length >= UINT32_MAX || !implementation_->reserve(length)) return Status::failed;
  auto &parser = *implementation_->parser;
  switch (parser.stage1(bytes, length, simdjson::stage1_mode::regular)) {
    case simdjson::SUCCESS:
      positions_ = parser.structural_indexes.get();
      count_ = parser.n_structural_indexes;
      return Status::ok;
    // Nothing but white space, or bytes that never begin a token.
    case simdjson::EMPTY: return Status::ok;
    case simdjson::UTF8_ERROR: return Status::invalid_utf8;
    case simdjson::UNESCAPED_CHARS: return Status::control_character;
    case simdjson::UNCLOSED_STRING: return Status::unclosed_string;
    default: return Status::failed;
  }
}

const char *kernel_name() {
  static const std::string name = simdjson::get_active_implementation()->name();
  return name.c_str();
}

}  // namespace mill

extern "C" const char *mill_json_kernel(void) { return mill::kernel_name(); }
