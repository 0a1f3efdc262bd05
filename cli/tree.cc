#include "cli/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace sluice::cli {
namespace {

constexpr size_t kScratch = 64 << 10;
constexpr size_t kVectors = 16;

// False: neither a regular file nor a folder.
bool kind_of(int folder, const dirent& entry, EntryKind* kind) {
  unsigned char type = entry.d_type;
  struct stat status {};
  if (type == DT_UNKNOWN) {
    if (fstatat(folder, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
    type = static_cast<unsigned char>(IFTODT(status.st_mode));
  }
  if (type == DT_LNK) {
    if (fstatat(folder, entry.d_name, &status, 0) != 0 || !S_ISREG(status.st_mode)) return false;
    type = DT_REG;
  }
  *kind = type == DT_DIR ? EntryKind::kFolder : EntryKind::kFile;
  return type == DT_DIR || type == DT_REG;
}

}  // namespace

int list_folder(const std::string& path,
                const std::function<void(const std::string&, EntryKind)>& found) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
  if (folder == nullptr) return errno;
  const std::string prefix = path.back() == '/' ? path : path + "/";
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(folder.get());
    if (entry == nullptr) return errno;
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    EntryKind kind{};
    if (kind_of(dirfd(folder.get()), *entry, &kind)) found(prefix + entry->d_name, kind);
  }
}

ssize_t read_through(int file, uint64_t offset, uint64_t length) {
  // Every vector is the same small buffer, which stays in the processor's cache.
  char scratch[kScratch];
  uint64_t done = 0;
  while (done < length) {
    iovec vectors[kVectors];
    int count = 0;
    for (uint64_t left = length - done; left > 0 && count < static_cast<int>(kVectors); ++count) {
      vectors[count] = {scratch, static_cast<size_t>(std::min<uint64_t>(left, kScratch))};
      left -= vectors[count].iov_len;
    }
    const ssize_t got = preadv(file, vectors, count, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += static_cast<uint64_t>(got);
  }
  return static_cast<ssize_t>(done);
}

}  // namespace sluice::cli
