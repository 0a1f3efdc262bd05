// A plugin loaded with RTLD_DEEPBIND: its calls to libc may bypass a preloaded library.
#include "tests/victims/plugin.h"

#include "tests/victims/victim.h"

uint64_t plugin_digest(const char* path, int take_signal) {
  const unsigned char* at = map_data(path);
  CHECK(is_data(at, 0, DATA_SIZE));
  uint64_t digest = digest_of(at, DATA_SIZE);
  CHECK(write(1, at + CELL - 2, 4) == 4);
  int fd = open_data(path);
  static unsigned char buffer[100000];
  ssize_t got;
  while ((got = read(fd, buffer, sizeof buffer)) > 0)
    digest = digest_more(digest, buffer, (size_t)got);
  CHECK(close(fd) == 0);
  if (take_signal) signal(SIGSEGV, SIG_DFL);
  CHECK(is_data(at, 0, DATA_SIZE));
  CHECK(munmap((void*)at, DATA_SIZE) == 0);
  return digest;
}
