#pragma once
// Regular expressions in time linear in the text: a C face of the RE2 library.
//
// Patterns and texts are UTF-8 bytes and need no 0 at their end. A compiled expression may be used by several threads at once.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mill_regex mill_regex;

enum mill_regex_option {
  MILL_REGEX_IGNORE_CASE = 1,
  MILL_REGEX_LITERAL = 2,       // the pattern is plain text
  MILL_REGEX_LONGEST = 4        // the longest of the leftmost matches, not the first that the pattern names
};

/// Compiles a pattern in RE2's syntax, where `.` matches a newline too. NULL: it is not one, or is too large; the reason, cut to
/// `capacity` with its 0, is in `message`.
mill_regex *mill_regex_compile(const uint8_t *pattern, size_t count, uint32_t options, char *message, size_t capacity);
void mill_regex_free(mill_regex *regex);

/// The groups that a pattern captures.
int32_t mill_regex_group_count(const mill_regex *regex);

/// Finds the leftmost match in text[start..<count]; what stands before `start` is still seen by `^` and `\b`.
///
/// Writes where the whole match and the first `pairs` - 1 groups begin and end, -1 for a group that took no part.
bool mill_regex_match(const mill_regex *regex, const uint8_t *text, size_t count, size_t start, int64_t *bounds, int32_t pairs);

#ifdef __cplusplus
}
#endif
