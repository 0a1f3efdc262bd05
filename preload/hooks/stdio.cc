// stdio's output: libc writes text that does not fit its buffer from the caller's memory to the
// kernel, by internal calls that no hook sees. So the text is pinned during the whole call.
#include <printf.h>

#include <cstdarg>

#include "preload/base/real.h"
#include "preload/cells/pins.h"

using namespace sluice::preload;  // NOLINT: every line here is about it

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

// Pins the format and every %s argument that lies in a protected mapping. `arguments` is not
// advanced for the caller. Costs one load while nothing is protected.
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

}  // namespace

// One line per call: name, parameters, arguments.
#define WRITE_ITEMS(name)                                                                \
  SLUICE_EXPORT size_t name(const void* buffer, size_t size, size_t items, FILE* file) { \
    const Pins pins(buffer, size* items);                                                \
    return REAL(name)(buffer, size, items, file);                                        \
  }
WRITE_ITEMS(fwrite)
WRITE_ITEMS(fwrite_unlocked)

#define WRITE_TEXT(name, parameters, arguments) \
  SLUICE_EXPORT int name parameters {           \
    Pins pins;                                  \
    pins.add_string(text);                      \
    return REAL(name) arguments;                \
  }
WRITE_TEXT(fputs, (const char* text, FILE* file), (text, file))
WRITE_TEXT(fputs_unlocked, (const char* text, FILE* file), (text, file))
WRITE_TEXT(puts, (const char* text), (text))

#define FORMAT(name, parameters, arguments) \
  SLUICE_EXPORT int name parameters {       \
    Pins pins;                              \
    pin_format(pins, format, words);        \
    return REAL(name) arguments;            \
  }
FORMAT(vprintf, (const char* format, va_list words), (format, words))
FORMAT(vfprintf, (FILE * file, const char* format, va_list words), (file, format, words))
FORMAT(vdprintf, (int fd, const char* format, va_list words), (fd, format, words))
FORMAT(__vprintf_chk, (int flag, const char* format, va_list words), (flag, format, words))
FORMAT(__vfprintf_chk, (FILE * file, int flag, const char* format, va_list words),
       (file, flag, format, words))
FORMAT(__vdprintf_chk, (int fd, int flag, const char* format, va_list words),
       (fd, flag, format, words))

// The variadic functions call the hooks of the v-functions.
#define VARIADIC(name, hook, parameters, arguments) \
  SLUICE_EXPORT int name parameters {               \
    va_list words;                                  \
    va_start(words, format);                        \
    const int result = hook arguments;              \
    va_end(words);                                  \
    return result;                                  \
  }
VARIADIC(printf, vprintf, (const char* format, ...), (format, words))
VARIADIC(fprintf, vfprintf, (FILE * file, const char* format, ...), (file, format, words))
VARIADIC(dprintf, vdprintf, (int fd, const char* format, ...), (fd, format, words))
VARIADIC(__printf_chk, __vprintf_chk, (int flag, const char* format, ...), (flag, format, words))
VARIADIC(__fprintf_chk, __vfprintf_chk, (FILE * file, int flag, const char* format, ...),
         (file, flag, format, words))
VARIADIC(__dprintf_chk, __vdprintf_chk, (int fd, int flag, const char* format, ...),
         (fd, flag, format, words))
