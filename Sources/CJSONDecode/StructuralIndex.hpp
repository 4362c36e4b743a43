#pragma once
// Stage 1 of simdjson: from bytes to the positions of all tokens, and nothing else of it.

#include <cstddef>
#include <cstdint>
#include <memory>

namespace mill {

/// Positions of the tokens of a stretch of JSON: each of `{}[]:,` outside strings, each opening quote, the first byte of each
/// other scalar. Also proves that the bytes are UTF-8, that no control character lies in a string and that the last string is
/// closed. Reused from stretch to stretch.
class StructuralIndex {
 public:
  enum class Status { ok, invalid_utf8, control_character, unclosed_string, failed };

  StructuralIndex();
  ~StructuralIndex();
  StructuralIndex(const StructuralIndex &) = delete;
  StructuralIndex &operator=(const StructuralIndex &) = delete;

  /// Indexes `length` bytes (under 4 GiB). Does not read past them.
  Status scan(const uint8_t *bytes, size_t length);

  /// `count()` ascending positions, then one that equals the length.
  const uint32_t *positions() const { return positions_; }
  uint32_t count() const { return count_; }

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
  const uint32_t *positions_ = nullptr;
  uint32_t count_ = 0;
  uint32_t empty_[4] = {0, 0, 0, 0};
};

const char *kernel_name();

}  // namespace mill
