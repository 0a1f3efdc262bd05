#include "optimizer/packs/pack_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

#include "optimizer/packs/pack_file.h"

namespace sluice::optimizer {
namespace {

constexpr size_t kDigits = 8;

// The number in a name as pack_name() makes it.
std::optional<uint32_t> number_of(const std::string& name) {
  uint32_t number = 0;
  for (size_t at = 0; at < std::min(kDigits, name.size()); ++at) {
    const char* const digits = "0123456789abcdef";
    const char* const digit = strchr(digits, name[at]);
    if (digit == nullptr || *digit == '\0') return std::nullopt;
    number = number << 4 | static_cast<uint32_t>(digit - digits);
  }
  if (name != pack_name(number)) return std::nullopt;
  return number;
}

bool is_leftover(const std::string& name) {
  const size_t end = strlen(kPackTemporary);
  return name.size() > end && name.compare(name.size() - end, end, kPackTemporary) == 0 &&
         number_of(name.substr(0, name.size() - end));
}

}  // namespace

std::string packs_folder(const std::string& base) {
  return base + "/sluice-packs-" + std::to_string(geteuid());
}

std::string chunks_folder(const std::string& base) {
  return base + "/sluice-chunks-" + std::to_string(geteuid());
}

UniqueFd open_packs_folder(const std::string& path, bool make, int* error, std::string* reason) {
  if (make && mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    *error = errno;
    *reason = path + ": " + strerror(*error);
    return {};
  }
  UniqueFd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  struct stat about {};
  if (!folder || fstat(folder.get(), &about) != 0) {
    *error = errno;
    *reason = path + ": " + strerror(*error);
    return {};
  }
  if (about.st_uid != geteuid() || (about.st_mode & 077) != 0) {
    *error = EPERM;
    *reason = path + " is not this user's alone";
    return {};
  }
  return folder;
}

std::string pack_name(uint32_t number) {
  char text[kDigits + 1];
  snprintf(text, sizeof text, "%08x", number);
  return std::string(text) + ".pack";
}

int list_packs(int folder, PackNames* names) {
  // A descriptor of its own: reading moves an offset that duplicates share.
  UniqueFd fd(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return errno;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(fdopendir(fd.get()), closedir);
  if (dir == nullptr) return errno;
  fd.release();
  errno = 0;
  while (const dirent* entry = readdir(dir.get())) {
    const std::string name = entry->d_name;
    if (const std::optional<uint32_t> number = number_of(name)) {
      names->packs.push_back(*number);
    } else if (is_leftover(name)) {
      names->leftovers.push_back(name);
    }
    errno = 0;
  }
  if (errno != 0) return errno;
  std::sort(names->packs.begin(), names->packs.end());
  return 0;
}

}  // namespace sluice::optimizer
