// Open folders and their entries.
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "bench/slowfs/request.h"

namespace sluice::slowfs {
namespace {

// What fuse_file_info::fh points to, from opendir to releasedir.
struct OpenFolder : Handle {
  std::mutex mutex;  // guards the rest
  DIR* stream = nullptr;
  std::string path;          // relative to SOURCE
  off_t position = 0;        // where `stream` stands
  dirent* unsent = nullptr;  // read, but did not fit into the last answer
  ~OpenFolder() override {
    if (stream != nullptr) closedir(stream);
  }
};

OpenFolder& folder_of(const fuse_file_info& fi) { return handle_of<OpenFolder>(fi.fh); }

// The folder of `node`; if it cannot be opened, none and *error.
std::unique_ptr<OpenFolder> open_node(Filesystem& fs, fuse_ino_t node, int* error) {
  auto folder = std::make_unique<OpenFolder>();
  folder->path = fs.inodes.path(node);
  *error = folder->path.empty() ? ESTALE : 0;
  if (*error != 0) return nullptr;
  const int fd =
      openat(fs.root, folder->path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  folder->stream = fd >= 0 ? fdopendir(fd) : nullptr;
  if (folder->stream != nullptr) return folder;
  *error = errno;
  if (fd >= 0) close(fd);
  return nullptr;
}

bool is_dots(const char* name) {
  return std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0;
}

// Adds one entry to `out`. Returns its size, which is more than `room` if it did not fit.
size_t add_entry(fuse_req_t request, const OpenFolder& folder, const dirent& item, bool plus,
                 char* out, size_t room) {
  Filesystem& fs = filesystem(request);
  if (!plus) {
    struct stat brief {};
    brief.st_ino = item.d_ino;
    brief.st_mode = static_cast<mode_t>(DTTOIF(item.d_type));
    return fuse_add_direntry(request, out, room, item.d_name, &brief, item.d_off);
  }
  const size_t need = fuse_add_direntry_plus(request, nullptr, 0, item.d_name, nullptr, 0);
  if (need > room) return need;
  fuse_entry_param entry{};
  entry.attr.st_ino = item.d_ino;
  entry.attr.st_mode = static_cast<mode_t>(DTTOIF(item.d_type));
  entry.attr_timeout = fs.settings.attr_timeout_s;
  entry.entry_timeout = fs.settings.entry_timeout_s;
  FileKey key;
  const std::string path = folder.path == "." ? item.d_name : folder.path + "/" + item.d_name;
  struct stat full {};
  // Without a node the kernel takes name and type and looks the rest up when it is requested.
  if (!is_dots(item.d_name) && attributes(fs.root, path, &full, &key) == 0) {
    entry.attr = full;
    entry.ino = fs.inodes.remember(key, path);
  }
  return fuse_add_direntry_plus(request, out, room, item.d_name, &entry, item.d_off);
}

void list(fuse_req_t request, fuse_ino_t node, size_t size, off_t offset, fuse_file_info* fi,
          bool plus) {
  Metadata call(request, Kind::kReaddir);
  std::unique_ptr<OpenFolder> unopened;  // the kernel opened it by itself: --cache-folders
  std::vector<char> out(size);
  size_t used = 0;
  int error = 0;
  if (fi->fh == 0) unopened = open_node(filesystem(request), node, &error);
  if (error == 0) {
    OpenFolder& folder = unopened != nullptr ? *unopened : folder_of(*fi);
    const std::lock_guard lock(folder.mutex);
    if (offset != folder.position) {
      if (offset == 0) {
        rewinddir(folder.stream);
      } else {
        seekdir(folder.stream, offset);
      }
      folder.position = offset;
      folder.unsent = nullptr;
    }
    for (;;) {
      errno = 0;
      if (folder.unsent == nullptr) folder.unsent = readdir(folder.stream);
      if (folder.unsent == nullptr) {
        error = errno;
        break;
      }
      const size_t need =
          add_entry(request, folder, *folder.unsent, plus, out.data() + used, size - used);
      if (need > size - used) break;
      used += need;
      folder.position = folder.unsent->d_off;
      folder.unsent = nullptr;
    }
  }
  call.wait();
  if (error != 0 && used == 0) {
    fuse_reply_err(request, error);
  } else {
    fuse_reply_buf(request, out.data(), used);
  }
}

}  // namespace

void open_folder(fuse_req_t request, fuse_ino_t node, fuse_file_info* fi) {
  Filesystem& fs = filesystem(request);
  if (fs.settings.cache_folders) {
    fuse_reply_err(request, ENOSYS);  // the kernel asks no more, and caches listings
    return;
  }
  Metadata call(request, Kind::kOpendir);
  int error = 0;
  std::unique_ptr<OpenFolder> folder = open_node(fs, node, &error);
  call.wait();
  if (error != 0) {
    fuse_reply_err(request, error);
    return;
  }
  fi->fh = fs.handles.add(std::move(folder));
  if (fuse_reply_open(request, fi) != 0) fs.handles.remove(fi->fh);
}

void read_folder(fuse_req_t request, fuse_ino_t node, size_t size, off_t offset,
                 fuse_file_info* fi) {
  list(request, node, size, offset, fi, false);
}

void read_folder_plus(fuse_req_t request, fuse_ino_t node, size_t size, off_t offset,
                      fuse_file_info* fi) {
  list(request, node, size, offset, fi, true);
}

void release_folder(fuse_req_t request, fuse_ino_t, fuse_file_info* fi) {
  if (fi->fh != 0) filesystem(request).handles.remove(fi->fh);
  fuse_reply_err(request, 0);
}

}  // namespace sluice::slowfs
