#include "protocol/stage.h"

#include <cstring>

#include "protocol/siphash.h"

namespace sluice::protocol {

StageKey stage_key(const uint64_t secret[2], const char* path, size_t length) {
  const Hash128 hash = siphash(secret, path, length);
  return {hash.low, hash.high};
}

void stage_name(char* out, const char* folder, uint64_t name) {
  const size_t length = strnlen(folder, kStageFolder - 1);
  memcpy(out, folder, length);
  out[length] = '/';
  for (unsigned i = 0; i < 16; ++i)
    out[length + 1 + i] = "0123456789abcdef"[name >> (60 - 4 * i) & 15];
  out[length + 17] = '\0';
}

size_t stage_path(char* out, const char* folder, size_t folder_length, const char* path,
                  size_t length) {
  size_t used = 0;
  const auto add = [&](const char* text, size_t size) {
    for (size_t at = 0; at < size;) {
      while (at < size && text[at] == '/') ++at;
      size_t end = at;
      while (end < size && text[end] != '/') ++end;
      const size_t part = end - at;
      if (part != 0 && !(part == 1 && text[at] == '.')) {
        if (used + 1 + part >= kStagePath) return false;
        out[used++] = '/';
        memcpy(out + used, text + at, part);
        used += part;
      }
      at = end;
    }
    return true;
  };
  if (length == 0) return 0;
  if (path[0] != '/' && (folder_length == 0 || folder[0] != '/' || !add(folder, folder_length))) {
    return 0;
  }
  if (!add(path, length)) return 0;
  // "name/" and "name/." require a folder, which `name` may not be.
  if (path[length - 1] == '/' ||
      (path[length - 1] == '.' && (length == 1 || path[length - 2] == '/'))) {
    return 0;
  }
  out[used] = '\0';
  return used;
}

}  // namespace sluice::protocol
