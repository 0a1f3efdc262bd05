#include "preload/base/log.h"

#include <sys/stat.h>

#include <cstdarg>
#include <cstdio>

#include "preload/base/start_page.h"
#include "preload/base/sys.h"

namespace sluice::preload {
namespace {

SLUICE_TOUCHED_AT_START constinit dev_t g_device = 0;
SLUICE_TOUCHED_AT_START constinit ino_t g_inode = 0;
SLUICE_TOUCHED_AT_START constinit bool g_known = false;

}  // namespace

void remember_stderr() {
  struct stat about;
  g_known = sys::call(SYS_fstat, 2, sys::word(&about)) == 0;
  if (!g_known) return;
  g_device = about.st_dev;
  g_inode = about.st_ino;
}

void say_raw(const char* text, size_t length) {
  struct stat about;
  if (!g_known || sys::call(SYS_fstat, 2, sys::word(&about)) != 0) return;
  if (about.st_dev != g_device || about.st_ino != g_inode) return;
  sys::call(SYS_write, 2, sys::word(text), static_cast<long>(length));
}

void say(LogLevel level, const char* format, ...) {
  if (level > g_settings.log) return;
  char line[1024];
  int length = snprintf(line, sizeof line, "sluice: ");
  va_list arguments;
  va_start(arguments, format);
  const int more =
      vsnprintf(line + length, sizeof line - 1 - static_cast<size_t>(length), format, arguments);
  va_end(arguments);
  if (more < 0) return;
  length += more;
  if (length > static_cast<int>(sizeof line) - 2) length = static_cast<int>(sizeof line) - 2;
  line[length++] = '\n';
  say_raw(line, static_cast<size_t>(length));
}

}  // namespace sluice::preload
