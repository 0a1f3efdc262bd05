#include "bench/slowfs/filesystem.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "bench/slowfs/request.h"

namespace sluice::slowfs {

Filesystem::Filesystem(const Settings& wanted, int root_descriptor)
    : settings(wanted),
      root(root_descriptor),
      meta_ns(static_cast<uint64_t>(std::llround(wanted.meta_latency_ms * 1e6))),
      read_ns(static_cast<uint64_t>(std::llround(wanted.read_latency_ms * 1e6))),
      started_ns(now_ns()),
      service(wanted.parallel, wanted.bandwidth_mb * 1e6, wanted.requests),
      gate(wanted.hang_after, wanted.fail_after) {}

Filesystem::~Filesystem() { close(root); }

void Filesystem::wait_for(uint64_t due_ns, uint64_t bytes) {
  const uint64_t wake_ns = pacer.wake_ns(due_ns, bytes);
  if (gate.sleep_until(wake_ns)) pacer.late(std::max(now_ns(), wake_ns) - wake_ns);
}

std::string Filesystem::figures() const {
  nlohmann::json out = ledger.snapshot();
  out["pid"] = getpid();
  out["counted"] = service.counted();
  out["hung"] = gate.hung();
  out["nodes"] = inodes.size();
  out["up_s"] = static_cast<double>(now_ns() - started_ns) / 1e9;
  out["overhead_us"] = static_cast<double>(pacer.overhead_ns()) / 1e3;
  out["settings"] = {{"source", settings.source},
                     {"mountpoint", settings.mountpoint},
                     {"meta_latency_ms", settings.meta_latency_ms},
                     {"read_latency_ms", settings.read_latency_ms},
                     {"bandwidth_mb", settings.bandwidth_mb},
                     {"parallel", settings.parallel},
                     {"requests", settings.requests},
                     {"read_ahead_kib", settings.read_ahead_kib},
                     {"threads", settings.threads},
                     {"max_background", settings.max_background},
                     {"attr_timeout_s", settings.attr_timeout_s},
                     {"entry_timeout_s", settings.entry_timeout_s},
                     {"keep_cache", settings.keep_cache},
                     {"cache_folders", settings.cache_folders}};
  // Names need not be UTF-8.
  return out.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

int attributes(int fd, const std::string& path, struct stat* out, FileKey* key) {
  struct statx x {};
  const int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | (path.empty() ? AT_EMPTY_PATH : 0);
  if (statx(fd, path.c_str(), flags, STATX_BASIC_STATS | STATX_BTIME, &x) != 0) return errno;
  *out = {};
  out->st_dev = makedev(x.stx_dev_major, x.stx_dev_minor);
  out->st_ino = x.stx_ino;
  out->st_mode = x.stx_mode;
  out->st_nlink = x.stx_nlink;
  out->st_uid = x.stx_uid;
  out->st_gid = x.stx_gid;
  out->st_rdev = makedev(x.stx_rdev_major, x.stx_rdev_minor);
  out->st_size = static_cast<off_t>(x.stx_size);
  out->st_blksize = static_cast<blksize_t>(x.stx_blksize);
  out->st_blocks = static_cast<blkcnt_t>(x.stx_blocks);
  out->st_atim = {x.stx_atime.tv_sec, static_cast<long>(x.stx_atime.tv_nsec)};
  out->st_mtim = {x.stx_mtime.tv_sec, static_cast<long>(x.stx_mtime.tv_nsec)};
  out->st_ctim = {x.stx_ctime.tv_sec, static_cast<long>(x.stx_ctime.tv_nsec)};
  *key = FileKey{out->st_dev, x.stx_ino,
                 (x.stx_mask & STATX_BTIME) != 0
                     ? x.stx_btime.tv_sec * 1'000'000'000 + x.stx_btime.tv_nsec
                     : 0};
  return 0;
}

namespace {

bool is_virtual(uint64_t node) { return node == Inodes::kStats || node == Inodes::kDrop; }

struct stat virtual_attributes(uint64_t node) {
  struct stat out {};
  out.st_ino = node;
  out.st_mode = S_IFREG | 0444;
  out.st_nlink = 1;
  clock_gettime(CLOCK_REALTIME, &out.st_mtim);
  return out;
}

void init(void* userdata, fuse_conn_info* connection) {
  Filesystem& fs = *static_cast<Filesystem*>(userdata);
  // Requests are small: splicing them costs more than it saves. Moving pages would take them out
  // of the backing file's cache.
  connection->want &= ~static_cast<unsigned>(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_MOVE);
  const unsigned wanted = FUSE_CAP_SPLICE_WRITE | FUSE_CAP_ASYNC_READ | FUSE_CAP_READDIRPLUS |
                          FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_AUTO_INVAL_DATA |
                          FUSE_CAP_EXPORT_SUPPORT;
  connection->want |= wanted & connection->capable;
  connection->max_write = 1 << 20;  // libfuse derives the largest read from it
  connection->max_read = 0;
  const uint64_t read_ahead = static_cast<uint64_t>(fs.settings.read_ahead_kib) * 1024;
  connection->max_readahead = static_cast<unsigned>(std::min<uint64_t>(read_ahead, UINT_MAX));
  connection->max_background = fs.settings.max_background;
  connection->congestion_threshold = std::max(1U, fs.settings.max_background * 3 / 4);
  connection->time_gran = 1;
}

void lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
  Filesystem& fs = filesystem(request);
  fuse_entry_param entry{};
  const bool stats = std::strcmp(name, kStatsName) == 0;
  if (parent == Inodes::kRoot && (stats || std::strcmp(name, kDropName) == 0)) {
    entry.ino = stats ? Inodes::kStats : Inodes::kDrop;
    entry.attr = virtual_attributes(entry.ino);
    if (fuse_req_ctx(request)->pid == fs.measuring_tid) fs.wait_for(now_ns() + kMeasuredNs, 0);
    fuse_reply_entry(request, &entry);
    return;
  }
  Metadata call(request, Kind::kLookup);
  entry.attr_timeout = fs.settings.attr_timeout_s;
  entry.entry_timeout = fs.settings.entry_timeout_s;
  const std::string path = fs.inodes.path(parent, name);
  FileKey key;
  const int error = path.empty() ? ESTALE : attributes(fs.root, path, &entry.attr, &key);
  call.wait();
  // A name that does not exist is an entry without a node: the kernel remembers that, too.
  if (error != 0 && error != ENOENT) {
    fuse_reply_err(request, error);
    return;
  }
  if (error == 0) {
    entry.ino = fs.inodes.remember(key, path);
    fs.inodes.looked_up(entry.ino);
  }
  if (fuse_reply_entry(request, &entry) != 0 && error == 0) fs.inodes.forget(entry.ino, 1);
}

void forget(fuse_req_t request, fuse_ino_t node, uint64_t count) {
  filesystem(request).inodes.forget(node, count);
  fuse_reply_none(request);
}

void forget_many(fuse_req_t request, size_t count, fuse_forget_data* forgets) {
  for (size_t i = 0; i < count; ++i) {
    filesystem(request).inodes.forget(forgets[i].ino, forgets[i].nlookup);
  }
  fuse_reply_none(request);
}

void getattr(fuse_req_t request, fuse_ino_t node, fuse_file_info* fi) {
  Filesystem& fs = filesystem(request);
  if (is_virtual(node)) {
    const struct stat out = virtual_attributes(node);
    fuse_reply_attr(request, &out, 0);
    return;
  }
  Metadata call(request, Kind::kGetattr);
  struct stat out {};
  FileKey key;
  int error = 0;
  if (fi != nullptr && fi->fh != 0) {
    error = attributes(file_descriptor(*fi), "", &out, &key);
  } else {
    const std::string path = fs.inodes.path(node);
    error = path.empty() ? ESTALE : attributes(fs.root, path, &out, &key);
    if (error == 0 && !fs.inodes.is(node, key)) error = ESTALE;
    // The name is gone, or another file's; a process that has the file open still asks about it.
    const int fd = error != 0 ? fs.inodes.open_copy(node) : -1;
    if (fd >= 0) {
      error = attributes(fd, "", &out, &key);
      close(fd);
    }
  }
  call.wait();
  if (error != 0) {
    fuse_reply_err(request, error);
  } else {
    const bool measuring = fuse_req_ctx(request)->pid == fs.measuring_tid;
    fuse_reply_attr(request, &out, measuring ? kMeasuredAttributes : fs.settings.attr_timeout_s);
  }
}

void readlink_(fuse_req_t request, fuse_ino_t node) {
  Filesystem& fs = filesystem(request);
  Metadata call(request, Kind::kReadlink);
  char target[PATH_MAX + 1];
  const std::string path = fs.inodes.path(node);
  const ssize_t length =
      path.empty() ? -1 : readlinkat(fs.root, path.c_str(), target, sizeof target - 1);
  const int error = path.empty() ? ESTALE : errno;
  call.wait();
  if (length < 0) {
    fuse_reply_err(request, error);
    return;
  }
  target[length] = '\0';
  fuse_reply_readlink(request, target);
}

void statfs_(fuse_req_t request, fuse_ino_t) {
  Filesystem& fs = filesystem(request);
  Metadata call(request, Kind::kStatfs);
  struct statvfs out {};
  const int error = fstatvfs(fs.root, &out) != 0 ? errno : 0;
  call.wait();
  if (error != 0) {
    fuse_reply_err(request, error);
  } else {
    fuse_reply_statfs(request, &out);
  }
}

void access_(fuse_req_t request, fuse_ino_t node, int mask) {
  Filesystem& fs = filesystem(request);
  if (is_virtual(node)) {
    fuse_reply_err(request, (mask & W_OK) != 0 ? EROFS : 0);
    return;
  }
  Metadata call(request, Kind::kAccess);
  const std::string path = fs.inodes.path(node);
  int error = 0;
  if ((mask & W_OK) != 0) {
    error = EROFS;
  } else if (path.empty()) {
    error = ESTALE;
  } else if (faccessat(fs.root, path.c_str(), mask, 0) != 0) {
    error = errno;
  }
  call.wait();
  fuse_reply_err(request, error);
}

// Closing a file that was only read asks nothing of most storage: the kernel does not ask again.
void flush_file(fuse_req_t request, fuse_ino_t, fuse_file_info*) {
  fuse_reply_err(request, filesystem(request).settings.flush ? 0 : ENOSYS);
}

// The kernel refuses writing to a mount that is read-only; this answers if it was remounted.
template <typename... Arguments>
void refuse(fuse_req_t request, Arguments...) {
  fuse_reply_err(request, EROFS);
}

fuse_lowlevel_ops make_operations() {
  fuse_lowlevel_ops ops{};
  ops.init = init;
  ops.lookup = lookup;
  ops.forget = forget;
  ops.forget_multi = forget_many;
  ops.getattr = getattr;
  ops.readlink = readlink_;
  ops.statfs = statfs_;
  ops.access = access_;
  ops.open = open_file;
  ops.read = read_file;
  ops.release = release_file;
  ops.opendir = open_folder;
  ops.readdir = read_folder;
  ops.readdirplus = read_folder_plus;
  ops.releasedir = release_folder;
  ops.flush = flush_file;
  ops.setattr = refuse;
  ops.mknod = refuse;
  ops.mkdir = refuse;
  ops.unlink = refuse;
  ops.rmdir = refuse;
  ops.symlink = refuse;
  ops.rename = refuse;
  ops.link = refuse;
  ops.write = refuse;
  ops.create = refuse;
  ops.setxattr = refuse;
  ops.removexattr = refuse;
  ops.fallocate = refuse;
  return ops;
}

}  // namespace

const fuse_lowlevel_ops& operations() {
  static const fuse_lowlevel_ops ops = make_operations();
  return ops;
}

}  // namespace sluice::slowfs
