#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "preload/base/self.h"
#include "preload/startup/startup.h"

namespace sluice::preload {

namespace {

bool is_ours_and_relative(const char* name, size_t length) {
  return length >= 12 && memchr(name, '/', length) != nullptr && *name != '/' &&
         strncmp(name + length - 12, "libsluice.so", 12) == 0;
}

// For most programs the only check that runs.
bool names_us_relatively(const char* list) {
  for (const char* at = list; *at != '\0';) {
    const size_t length = strcspn(at, ": ");
    if (is_ours_and_relative(at, length)) return true;
    at += length;
    if (*at != '\0') ++at;
  }
  return false;
}

}  // namespace

void make_preload_absolute() {
  static constexpr char kName[] = "LD_PRELOAD=";
  static constexpr size_t kNameLength = sizeof kName - 1;
  // In place: some programs (bash) have a setenv of their own.
  char** variable = environ;
  while (*variable != nullptr && strncmp(*variable, kName, kNameLength) != 0) ++variable;
  if (*variable == nullptr) return;
  const char* list = *variable + kNameLength;
  if (!names_us_relatively(list)) return;
  char path[4096];
  static char absolute[8192];
  memcpy(absolute, kName, kNameLength);
  size_t used = kNameLength;
  bool changed = false;
  for (const char* at = list; *at != '\0';) {
    const size_t length = strcspn(at, ": ");
    const bool ours = is_ours_and_relative(at, length);
    int wrote = 0;
    if (ours && library_path(path, sizeof path)) {
      wrote = snprintf(absolute + used, sizeof absolute - used, "%s", path);
      changed = true;
    } else {
      wrote =
          snprintf(absolute + used, sizeof absolute - used, "%.*s", static_cast<int>(length), at);
    }
    if (wrote < 0 || static_cast<size_t>(wrote) + 1 >= sizeof absolute - used) return;
    used += static_cast<size_t>(wrote);
    at += length;
    if (*at != '\0') absolute[used++] = *at++;
  }
  absolute[used] = '\0';
  if (changed) *variable = absolute;
}

}  // namespace sluice::preload
