#include "protocol/options.h"

#include <cstring>

#include "protocol/importance.h"
#include "protocol/words.h"

namespace sluice::protocol {
namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

}  // namespace

bool parse_bytes(const char* text, uint64_t* bytes) {
  if (!digit(*text)) return false;
  uint64_t whole = 0;
  for (; digit(*text); ++text) {
    if (__builtin_mul_overflow(whole, 10U, &whole)) return false;
    if (__builtin_add_overflow(whole, static_cast<uint64_t>(*text - '0'), &whole)) return false;
  }
  uint64_t fraction = 0;  // in units of 1 / `scale`; a millionth is the finest part that counts
  uint64_t scale = 1;
  bool whole_bytes = true;
  if (*text == '.') {
    if (!digit(*++text)) return false;
    for (; digit(*text); ++text) {
      if (*text != '0') whole_bytes = false;
      if (scale >= 1000000) continue;
      fraction = fraction * 10 + static_cast<uint64_t>(*text - '0');
      scale *= 10;
    }
  }
  unsigned shift = 0;
  switch (lower(*text)) {
    case 'k':
      shift = 10;
      break;
    case 'm':
      shift = 20;
      break;
    case 'g':
      shift = 30;
      break;
    case 't':
      shift = 40;
      break;
    default:
      break;
  }
  if (shift != 0) {
    ++text;
    if (lower(*text) == 'i') ++text;
  }
  if (lower(*text) == 'b') ++text;
  if (*text != '\0' || (shift == 0 && !whole_bytes)) return false;
  // A fraction is less than one unit: added to a whole part that fits, it cannot overflow.
  if (whole > UINT64_MAX >> shift) return false;
  *bytes = (whole << shift) + ((fraction << shift) / scale);
  return true;
}

bool parse_switch(const char* text, bool* on) {
  static constexpr struct {
    const char* text;
    bool on;
  } kWords[] = {{"on", true},   {"1", true},  {"yes", true}, {"true", true},
                {"off", false}, {"0", false}, {"no", false}, {"false", false}};
  for (const auto& word : kWords) {
    if (strcmp(word.text, text) != 0) continue;
    *on = word.on;
    return true;
  }
  return false;
}

const char* option_problem(const OptionInfo& info, const char* value) {
  if (info.autos && strcmp(value, "auto") == 0) return nullptr;
  uint64_t number = 0;
  bool on = false;
  switch (info.kind) {
    case OptionKind::kText:
    case OptionKind::kPaths:
      // The handshake sends each option as one line.
      return strchr(value, '\n') == nullptr ? nullptr : "contains a line break";
    case OptionKind::kBytes:
      if (!parse_bytes(value, &number)) return "is not a size such as 50M";
      if (number < info.low || number > info.high) return "is a size out of range";
      return nullptr;
    case OptionKind::kNumber:
      if (!parse_number(value, strlen(value), &number)) return "is not a whole number";
      if (number < info.low || number > info.high) return "is a number out of range";
      return nullptr;
    case OptionKind::kChoice:
      return choice_number(info.choices, value, strlen(value)) >= 0 ? nullptr
                                                                    : "is not one of the choices";
    case OptionKind::kSwitch:
      return parse_switch(value, &on) ? nullptr : "is neither on nor off";
    case OptionKind::kImportance: {
      Importance importance;
      return parse_importance(value, &importance);
    }
  }
  return "is of an unknown kind";
}

const OptionInfo* misspelled_variable(const char* name, size_t length) {
  constexpr size_t kPrefix = sizeof kVariablePrefix - 1;
  if (length < kPrefix || memcmp(name, kVariablePrefix, kPrefix) != 0) return nullptr;
  const auto is = [name, length](const char* other) {
    return strlen(other) == length && memcmp(name, other, length) == 0;
  };
  for (const char* own : kOwnVariables) {
    if (is(own)) return nullptr;
  }
  const OptionInfo* nearest = nullptr;
  unsigned least = ~0U;
  for (const OptionInfo& info : kOptions) {
    if (is(info.variable)) return nullptr;
    const unsigned distance = edit_distance(
        name + kPrefix, length - kPrefix, info.variable + kPrefix, strlen(info.variable) - kPrefix);
    if (distance < least) nearest = &info;
    least = distance < least ? distance : least;
  }
  return nearest != nullptr && is_near(least, length - kPrefix) ? nearest : nullptr;
}

}  // namespace sluice::protocol
