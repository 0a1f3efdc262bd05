#include "protocol/place.h"

#include <cstdio>
#include <cstring>

#include "protocol/version.h"

namespace sluice::protocol {
namespace {

bool has_word(const char* begin, const char* end, const char* word) {
  const size_t length = strlen(word);
  for (const char* at = begin; at < end;) {
    const char* stop = static_cast<const char*>(memchr(at, ',', static_cast<size_t>(end - at)));
    if (stop == nullptr) stop = end;
    if (static_cast<size_t>(stop - at) == length && memcmp(at, word, length) == 0) return true;
    at = stop + 1;
  }
  return false;
}

}  // namespace

uint64_t memory_cgroup_hash(const char* text) {
  const char* path = nullptr;
  for (const char* line = text; *line != '\0';) {
    const char* end = strchrnul(line, '\n');
    const char* first = strchr(line, ':');
    const char* second = first != nullptr ? strchr(first + 1, ':') : nullptr;
    if (second != nullptr && second < end) {
      if (has_word(first + 1, second, "memory")) {
        path = second + 1;
        break;
      }
      if (second == first + 1 && path == nullptr) path = second + 1;
    }
    line = *end == '\n' ? end + 1 : end;
  }
  if (path == nullptr) return 0;
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (; *path != '\0' && *path != '\n'; ++path) {
    hash = (hash ^ static_cast<unsigned char>(*path)) * 0x100000001b3ULL;
  }
  return hash;
}

bool socket_folder(char* out, size_t size, uint32_t uid) {
  const int length = snprintf(out, size, "/tmp/sluice-%u", uid);
  return length > 0 && static_cast<size_t>(length) < size;
}

bool socket_path(char* out, size_t size, uint32_t uid, uint64_t mount_namespace,
                 uint64_t cgroup_hash) {
  const int length = snprintf(out, size, "/tmp/sluice-%u/v%u-%llx-%016llx.sock", uid, kVersion,
                              static_cast<unsigned long long>(mount_namespace),
                              static_cast<unsigned long long>(cgroup_hash));
  return length > 0 && static_cast<size_t>(length) < size;
}

}  // namespace sluice::protocol
