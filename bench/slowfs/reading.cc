// Open files and their bytes.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "bench/slowfs/request.h"

namespace sluice::slowfs {
namespace {

// What fuse_file_info::fh points to, from open to release.
struct OpenFile : Handle {
  int fd = -1;                     // of the backing file; -1: the virtual file
  std::atomic<bool> read = false;  // the first read belongs to the request that opened it
  std::string figures;             // what the virtual file reads as, fixed when it was opened
  ~OpenFile() override {
    if (fd >= 0) close(fd);
  }
};

OpenFile& open_file_of(const fuse_file_info& fi) { return handle_of<OpenFile>(fi.fh); }

void close_open_file(Filesystem& fs, uint64_t node, const fuse_file_info& fi) {
  const OpenFile& file = open_file_of(fi);
  if (file.fd >= 0) fs.inodes.closed(node, file.fd);
  fs.handles.remove(fi.fh);
}

// Opens a backing file, leaving its access time alone where that is allowed.
int open_backing(int root, const std::string& path) {
  const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const int fd = openat(root, path.c_str(), flags | O_NOATIME);
  return fd >= 0 || errno != EPERM ? fd : openat(root, path.c_str(), flags);
}

// From here on handing the kernel its own pages costs less than copying the bytes twice: 0.75
// against 0.95 s of CPU per GiB at 128 KiB a read, of which 0.65 are the kernel's one copy.
constexpr uint64_t kSpliceFrom = 32768;

void reply_spliced(fuse_req_t request, int fd, uint64_t bytes, off_t offset) {
  fuse_bufvec data = FUSE_BUFVEC_INIT(bytes);
  data.buf[0].flags =
      static_cast<fuse_buf_flags>(FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK | FUSE_BUF_FD_RETRY);
  data.buf[0].fd = fd;
  data.buf[0].pos = offset;
  fuse_reply_data(request, &data, static_cast<fuse_buf_copy_flags>(0));
}

void reply_copied(fuse_req_t request, int fd, uint64_t bytes, off_t offset) {
  char data[kSpliceFrom];
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got = pread(fd, data + done, bytes - done, offset + static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      fuse_reply_err(request, errno);
      return;
    }
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  fuse_reply_buf(request, data, done);
}

}  // namespace

int file_descriptor(const fuse_file_info& fi) { return open_file_of(fi).fd; }

void open_file(fuse_req_t request, fuse_ino_t node, fuse_file_info* fi) {
  Filesystem& fs = filesystem(request);
  auto file = std::make_unique<OpenFile>();
  if ((fi->flags & O_ACCMODE) != O_RDONLY) {
    fuse_reply_err(request, EROFS);
    return;
  }
  if (node == Inodes::kDrop) {
    if (fs.settings.threads < 2) {  // nothing would answer what the kernel waits for meanwhile
      fuse_reply_err(request, EOPNOTSUPP);
      return;
    }
    drop_cached(fs);
    fi->direct_io = 1;
  } else if (node == Inodes::kStats) {
    file->figures = fs.figures();
    fi->direct_io = 1;
  } else {
    Metadata call(request, Kind::kOpen, !fs.inodes.opens_what_was_looked_up(node));
    const std::string path = fs.inodes.path(node);
    struct stat unused {};
    FileKey key;
    int error = path.empty() ? ESTALE : 0;
    if (error == 0 && (file->fd = open_backing(fs.root, path)) < 0) error = errno;
    if (error == 0) error = attributes(file->fd, "", &unused, &key);
    // Another file has taken the name: the kernel is to look it up again.
    if (error == 0 && !fs.inodes.is(node, key)) error = ESTALE;
    call.wait();
    if (error != 0) {
      fuse_reply_err(request, error);
      return;
    }
    fi->keep_cache = fs.settings.keep_cache ? 1 : 0;
  }
  if (file->fd >= 0) fs.inodes.opened(node, file->fd);
  fi->fh = fs.handles.add(std::move(file));
  if (fuse_reply_open(request, fi) != 0) close_open_file(fs, node, *fi);
}

void release_file(fuse_req_t request, fuse_ino_t node, fuse_file_info* fi) {
  close_open_file(filesystem(request), node, *fi);
  fuse_reply_err(request, 0);
}

void read_file(fuse_req_t request, fuse_ino_t, size_t size, off_t offset, fuse_file_info* fi) {
  Filesystem& fs = filesystem(request);
  OpenFile& file = open_file_of(*fi);
  if (file.fd < 0) {
    const size_t begin = std::min(static_cast<size_t>(offset), file.figures.size());
    const size_t length = std::min(size, file.figures.size() - begin);
    fuse_reply_buf(request, file.figures.data() + begin, length);
    return;
  }
  struct stat info {};
  const int64_t end = fstat(file.fd, &info) == 0 ? info.st_size : 0;
  const uint64_t bytes =
      static_cast<uint64_t>(std::clamp<int64_t>(end - offset, 0, static_cast<int64_t>(size)));
  fs.ledger.count(fuse_req_ctx(request)->pid, Kind::kRead, bytes);
  const bool good = fs.gate.pass(bytes);
  // The link is entered after a hang, not before: its time must not run backwards.
  const uint64_t due_ns =
      fs.service.admit(now_ns(), fs.read_ns, good ? bytes : 0, file.read.exchange(true));
  fs.wait_for(due_ns, bytes);
  if (!good) {
    fs.ledger.count_failed();
    fuse_reply_err(request, EIO);
    return;
  }
  if (bytes >= kSpliceFrom) {
    const uint64_t begin_ns = now_ns();
    reply_spliced(request, file.fd, bytes, offset);
    fs.pacer.learn(bytes, now_ns() - begin_ns);
  } else {
    reply_copied(request, file.fd, bytes, offset);
  }
}

}  // namespace sluice::slowfs
