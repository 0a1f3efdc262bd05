#include "preload/cells/format_pins.h"

#include <printf.h>

#include <cstddef>

namespace sluice::preload {
namespace {

constexpr size_t kMaxArguments = 64;

// Collects arguments by the types that parse_printf_format() returned: strings that begin in a
// protected mapping into `strings`, the largest int into `largest`.
struct Arguments {
  const char* strings[kMaxArguments];
  size_t string_count = 0;
  size_t largest = 0;

  void take(int type, va_list arguments) {
    if ((type & PA_FLAG_PTR) != 0) {
      va_arg(arguments, void*);
      return;
    }
    switch (type & ~PA_FLAG_MASK) {
      case PA_STRING:
        add(va_arg(arguments, const char*));
        return;
      case PA_WSTRING:
      case PA_POINTER:
        va_arg(arguments, void*);
        return;
      case PA_FLOAT:
      case PA_DOUBLE:
        if ((type & PA_FLAG_LONG_DOUBLE) != 0) {
          va_arg(arguments, long double);
        } else {
          va_arg(arguments, double);
        }
        return;
      default:
        if ((type & (PA_FLAG_LONG | PA_FLAG_LONG_LONG)) != 0) {
          va_arg(arguments, long);
        } else {
          const int value = va_arg(arguments, int);
          if (value > 0 && static_cast<size_t>(value) > largest) {
            largest = static_cast<size_t>(value);
          }
        }
        return;
    }
  }

  void add(const char* text) {
    const auto at = reinterpret_cast<uintptr_t>(text);
    if (maybe_protected(at, at + 1)) strings[string_count++] = text;
  }
};

// A string with a precision need not end in NUL, so no more of it may be read than the largest
// precision in the format: a literal one, or any int argument ("%.*s").
size_t longest_string(const char* format, size_t largest_int) {
  size_t limit = largest_int;
  bool precise = false;
  for (const char* at = format; *at != '\0'; ++at) {
    if (*at != '.') continue;
    precise = true;
    size_t digits = 0;
    for (const char* digit = at + 1; *digit >= '0' && *digit <= '9'; ++digit) {
      digits = digits * 10 + static_cast<size_t>(*digit - '0');
    }
    if (digits > limit) limit = digits;
  }
  return precise ? limit : SIZE_MAX;
}

}  // namespace

void pin_format(Pins& pins, const char* format, va_list arguments) {
  if (g_high.load(std::memory_order_relaxed) == 0) return;
  pins.add_string(format);
  int types[kMaxArguments];
  const size_t count = parse_printf_format(format, kMaxArguments, types);
  Arguments found;
  va_list copy;
  va_copy(copy, arguments);
  for (size_t i = 0; i < count && i < kMaxArguments; ++i) found.take(types[i], copy);
  va_end(copy);
  if (found.string_count == 0) return;
  const size_t limit = longest_string(format, found.largest);
  for (size_t i = 0; i < found.string_count; ++i) pins.add_string(found.strings[i], limit);
}

}  // namespace sluice::preload
