#pragma once
// Bytes of strings that had to be rewritten: unescaped, compacted, or moved to where a newline follows each record.

#include <cstdint>
#include <cstdlib>
#include <new>

namespace mill {

/// Blocks that never move, in one list; the whole list is handed over with `release`.
class Arena {
 public:
  struct Block { Block *next; };

  Arena() = default;
  ~Arena() { free_blocks(blocks_); }
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  /// Room for `count` bytes and 64 more that may be read or written.
  uint8_t *reserve(size_t count) {
    if (room_ < count + 64) grow(count + 64);
    return cursor_;
  }

  /// Keeps the first `count` bytes of what was reserved.
  void commit(size_t count) {
    cursor_ += count;
    room_ -= count;
  }

  void *release() {
    Block *blocks = blocks_;
    blocks_ = nullptr;
    cursor_ = nullptr;
    room_ = 0;
    return blocks;
  }

  static void free_blocks(Block *block) {
    while (block) {
      Block *next = block->next;
      std::free(block);
      block = next;
    }
  }

 private:
  void grow(size_t count) {
    size_t size = sizeof(Block) + (count > (64 << 10) ? count : (64 << 10));
    auto *block = static_cast<Block *>(std::malloc(size));
    if (!block) throw std::bad_alloc();
    block->next = blocks_;
    blocks_ = block;
    cursor_ = reinterpret_cast<uint8_t *>(block + 1);
    room_ = size - sizeof(Block);
  }

  Block *blocks_ = nullptr;
  uint8_t *cursor_ = nullptr;
  size_t room_ = 0;
};

}  // namespace mill
