// stdio's output: libc writes text that does not fit its buffer from the caller's memory to the
// kernel, by internal calls that no hook sees. So the text is pinned during the whole call.
#include <printf.h>

#include <cstdarg>

#include "preload/base/real.h"
#include "preload/cells/format_pins.h"
#include "preload/cells/pins.h"

using namespace sluice::preload;  // NOLINT: every line here is about it

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
