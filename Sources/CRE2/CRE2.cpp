#include "CRE2.h"

#include <algorithm>
#include <cstring>
#include <re2/re2.h>

struct mill_regex {
  RE2 expression;
};

namespace {
constexpr int pairsMax = 17;

re2::StringPiece piece(const uint8_t *bytes, size_t count) {
  // RE2 says by a null pointer that a group took no part: an empty text needs another one.
  return count == 0 ? re2::StringPiece("", 0) : re2::StringPiece(reinterpret_cast<const char *>(bytes), count);
}
} // namespace

mill_regex *mill_regex_compile(const uint8_t *pattern, size_t count, uint32_t options, char *message, size_t capacity) {
  RE2::Options settings;
  settings.set_log_errors(false);
  settings.set_dot_nl(true);
  settings.set_case_sensitive(!(options & MILL_REGEX_IGNORE_CASE));
  settings.set_literal(options & MILL_REGEX_LITERAL);
  settings.set_max_mem(64 << 20);
  settings.set_longest_match(options & MILL_REGEX_LONGEST);
  auto *regex = new mill_regex{RE2(piece(pattern, count), settings)};
  if (regex->expression.ok()) return regex;
  if (capacity > 0) {
    const std::string &reason = regex->expression.error();
    size_t length = std::min(reason.size(), capacity - 1);
    std::memcpy(message, reason.data(), length);
    message[length] = 0;
  }
  delete regex;
  return nullptr;
}

void mill_regex_free(mill_regex *regex) { delete regex; }

int32_t mill_regex_group_count(const mill_regex *regex) { return regex->expression.NumberOfCapturingGroups(); }

bool mill_regex_match(const mill_regex *regex, const uint8_t *text, size_t count, size_t start, int64_t *bounds, int32_t pairs) {
  re2::StringPiece whole = piece(text, count);
  re2::StringPiece found[pairsMax];
  int wanted = std::clamp(pairs, 0, pairsMax);
  if (!regex->expression.Match(whole, start, count, RE2::UNANCHORED, found, wanted)) return false;
  for (int index = 0; index < wanted; index++) {
    bool isPart = found[index].data() != nullptr;
    bounds[2 * index] = isPart ? found[index].data() - whole.data() : -1;
    bounds[2 * index + 1] = isPart ? bounds[2 * index] + static_cast<int64_t>(found[index].size()) : -1;
  }
  return true;
}
