// stdio's output: libc writes text that does not fit its buffer from the caller's memory to the
// kernel, by internal calls that no hook sees. So the text is pinned during the whole call.
#include <printf.h>

#include <cstdarg>

#include "preload/base/real.h"
#include "preload/cells/format_pins.h"
#include "preload/cells/pins.h"

using sluice::preload::pin_format;
using sluice::preload::Pins;

SLUICE_EXPORT size_t fwrite(const void* buffer, size_t size, size_t items, FILE* file) {
  const Pins pins(buffer, size * items);
  return REAL(fwrite)(buffer, size, items, file);
}
SLUICE_EXPORT size_t fwrite_unlocked(const void* buffer, size_t size, size_t items, FILE* file) {
  const Pins pins(buffer, size * items);
  return REAL(fwrite_unlocked)(buffer, size, items, file);
}
SLUICE_EXPORT int fputs(const char* text, FILE* file) {
  Pins pins;
  pins.add_string(text);
  return REAL(fputs)(text, file);
}
SLUICE_EXPORT int fputs_unlocked(const char* text, FILE* file) {
  Pins pins;
  pins.add_string(text);
  return REAL(fputs_unlocked)(text, file);
}
SLUICE_EXPORT int puts(const char* text) {
  Pins pins;
  pins.add_string(text);
  return REAL(puts)(text);
}

SLUICE_EXPORT int vprintf(const char* format, va_list arguments) {
  Pins pins;
  pin_format(pins, format, arguments);
  return REAL(vprintf)(format, arguments);
}
SLUICE_EXPORT int vfprintf(FILE* file, const char* format, va_list arguments) {
  Pins pins;
  pin_format(pins, format, arguments);
  return REAL(vfprintf)(file, format, arguments);
}
SLUICE_EXPORT int vdprintf(int fd, const char* format, va_list arguments) {
  Pins pins;
  pin_format(pins, format, arguments);
  return REAL(vdprintf)(fd, format, arguments);
}
SLUICE_EXPORT int __vprintf_chk(int flag, const char* format, va_list arguments) {
  Pins pins;
  pin_format(pins, format, arguments);
  return REAL(__vprintf_chk)(flag, format, arguments);
}
SLUICE_EXPORT int __vfprintf_chk(FILE* file, int flag, const char* format, va_list arguments) {
  Pins pins;
  pin_format(pins, format, arguments);
  return REAL(__vfprintf_chk)(file, flag, format, arguments);
}
SLUICE_EXPORT int __vdprintf_chk(int fd, int flag, const char* format, va_list arguments) {
  Pins pins;
  pin_format(pins, format, arguments);
  return REAL(__vdprintf_chk)(fd, flag, format, arguments);
}

// The variadic functions call the hooks of the v-functions.
SLUICE_EXPORT int printf(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = vprintf(format, arguments);
  va_end(arguments);
  return result;
}
SLUICE_EXPORT int fprintf(FILE* file, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = vfprintf(file, format, arguments);
  va_end(arguments);
  return result;
}
SLUICE_EXPORT int dprintf(int fd, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = vdprintf(fd, format, arguments);
  va_end(arguments);
  return result;
}
SLUICE_EXPORT int __printf_chk(int flag, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = __vprintf_chk(flag, format, arguments);
  va_end(arguments);
  return result;
}
SLUICE_EXPORT int __fprintf_chk(FILE* file, int flag, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = __vfprintf_chk(file, flag, format, arguments);
  va_end(arguments);
  return result;
}
SLUICE_EXPORT int __dprintf_chk(int fd, int flag, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = __vdprintf_chk(fd, flag, format, arguments);
  va_end(arguments);
  return result;
}
