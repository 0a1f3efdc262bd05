#include "protocol/options.h"

#include <cstring>

namespace sluice::protocol {
namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

bool parse_number(const char* text, uint64_t* number) {
  uint64_t value = 0;
  if (!digit(*text)) return false;
  for (; digit(*text); ++text) {
    if (__builtin_mul_overflow(value, 10U, &value)) return false;
    if (__builtin_add_overflow(value, static_cast<uint64_t>(*text - '0'), &value)) return false;
  }
  *number = value;
  return *text == '\0';
}

bool is_choice(const char* choices, const char* value) {
  const size_t length = strlen(value);
  for (const char* at = choices; length > 0 && *at != '\0';) {
    const char* end = strchrnul(at, '|');
    if (static_cast<size_t>(end - at) == length && strncmp(at, value, length) == 0) return true;
    at = *end == '|' ? end + 1 : end;
  }
  return false;
}

}  // namespace

bool parse_bytes(const char* text, uint64_t* bytes) {
  if (!digit(*text)) return false;
  uint64_t whole = 0;
  for (; digit(*text); ++text) {
    if (__builtin_mul_overflow(whole, 10U, &whole)) return false;
    if (__builtin_add_overflow(whole, static_cast<uint64_t>(*text - '0'), &whole)) return false;
  }
  uint64_t fraction = 0;  // of `scale`; a millionth is the finest part that counts
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
  // A fraction is less than one unit, so it cannot carry a whole part that fits beyond the type.
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
      // The handshake carries options as lines.
      return strchr(value, '\n') == nullptr ? nullptr : "contains a line break";
    case OptionKind::kBytes:
      if (!parse_bytes(value, &number)) return "is not a size such as 50M";
      if (number < info.low || number > info.high) return "is a size out of range";
      return nullptr;
    case OptionKind::kNumber:
      if (!parse_number(value, &number)) return "is not a whole number";
      if (number < info.low || number > info.high) return "is a number out of range";
      return nullptr;
    case OptionKind::kChoice:
      return is_choice(info.choices, value) ? nullptr : "is not one of the choices";
    case OptionKind::kSwitch:
      return parse_switch(value, &on) ? nullptr : "is neither on nor off";
  }
  return "is of an unknown kind";
}

}  // namespace sluice::protocol
