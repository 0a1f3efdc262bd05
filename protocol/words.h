// Parses values of options. Freestanding, as options.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sluice::protocol {

// A decimal whole number of `length` characters. False, with *number unchanged, if it is none.
inline bool parse_number(const char* text, size_t length, uint64_t* number) {
  uint64_t value = 0;
  for (size_t i = 0; i < length; ++i) {
    if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(value, 10U, &value) ||
        __builtin_add_overflow(value, static_cast<uint64_t>(text[i] - '0'), &value)) {
      return false;
    }
  }
  if (length == 0) return false;
  *number = value;
  return true;
}

// Which of `choices` ("a|b|c") the `length` characters of `value` are, from 0; -1: none.
inline int choice_number(const char* choices, const char* value, size_t length) {
  int number = 0;
  for (const char* at = choices; length > 0; ++number) {
    const char* end = strchrnul(at, '|');
    if (static_cast<size_t>(end - at) == length && strncmp(at, value, length) == 0) return number;
    if (*end == '\0') break;
    at = end + 1;
  }
  return -1;
}

// The edit distance (insert, delete, substitute, swap neighbours; optimal string alignment) of two
// words of fewer than 48 characters; for longer words, more than any such distance.
inline unsigned edit_distance(const char* a, size_t a_length, const char* b, size_t b_length) {
  constexpr size_t kMost = 48;
  if (a_length >= kMost || b_length >= kMost) return 2 * kMost;
  unsigned rows[3][kMost];  // of the table: last but one, last, current
  for (size_t j = 0; j <= b_length; ++j) rows[1][j] = static_cast<unsigned>(j);
  for (size_t i = 1; i <= a_length; ++i) {
    unsigned* const before = rows[i % 3];
    unsigned* const row = rows[(i + 1) % 3];
    const unsigned* const swapped = rows[(i + 2) % 3];
    row[0] = static_cast<unsigned>(i);
    for (size_t j = 1; j <= b_length; ++j) {
      const unsigned changed = before[j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0);
      unsigned least = (before[j] < row[j - 1] ? before[j] : row[j - 1]) + 1;
      if (changed < least) least = changed;
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
          swapped[j - 2] + 1 < least) {
        least = swapped[j - 2] + 1;
      }
      row[j] = least;
    }
  }
  return rows[(a_length + 1) % 3][b_length];
}

// So small that one word may be a misspelling of the other.
inline bool is_near(unsigned distance, size_t length) { return distance <= (length < 6 ? 1U : 2U); }

}  // namespace sluice::protocol
