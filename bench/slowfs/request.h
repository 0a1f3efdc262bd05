// What every operation does first and last: be counted, be given a time, wait for it.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse3/fuse_lowlevel.h>

#include "bench/slowfs/clock.h"
#include "bench/slowfs/filesystem.h"

namespace sluice::slowfs {

inline Filesystem& filesystem(fuse_req_t request) {
  return *static_cast<Filesystem*>(fuse_req_userdata(request));
}

// A metadata call. The work is done first and the answer given when it is due, so that the work
// itself does not add to the latency.
class Metadata {
 public:
  // Not `counted`: it belongs to a request that was counted (Service::admit()).
  Metadata(fuse_req_t request, Kind kind, bool counted = true) : filesystem_(filesystem(request)) {
    const int tid = fuse_req_ctx(request)->pid;
    if (tid == filesystem_.measuring_tid) return;
    due_ns_ = filesystem_.service.admit(now_ns(), filesystem_.meta_ns, 0, counted);
    filesystem_.ledger.count(tid, kind);
  }
  void wait() {
    if (due_ns_ != 0) filesystem_.wait_for(due_ns_, 0);
  }

 private:
  Filesystem& filesystem_;
  uint64_t due_ns_ = 0;
};

// Attributes of the file at `path` below SOURCE (of descriptor `fd` itself if path is ""), and
// which file it is. Returns 0 or an errno.
int attributes(int fd, const std::string& path, struct stat* out, FileKey* key);

// How long the virtual file's lookup sleeps for the thread that measures, and its seconds of
// attributes: long enough that only lookups are measured.
inline constexpr uint64_t kMeasuredNs = 300'000;
inline constexpr double kMeasuredAttributes = 0.005;

void read_file(fuse_req_t request, fuse_ino_t node, size_t size, off_t offset, fuse_file_info* fi);
void open_file(fuse_req_t request, fuse_ino_t node, fuse_file_info* fi);
void release_file(fuse_req_t request, fuse_ino_t node, fuse_file_info* fi);

void open_folder(fuse_req_t request, fuse_ino_t node, fuse_file_info* fi);
void read_folder(fuse_req_t request, fuse_ino_t node, size_t size, off_t offset,
                 fuse_file_info* fi);
void read_folder_plus(fuse_req_t request, fuse_ino_t node, size_t size, off_t offset,
                      fuse_file_info* fi);
void release_folder(fuse_req_t request, fuse_ino_t node, fuse_file_info* fi);

// Drops what the kernel caches of the mount: pages, attributes, and names but those that do not
// exist. Waits for reads in flight, so other threads must answer requests. Not while a folder is
// locked for a request of the caller.
void drop_cached(const Filesystem& fs);

// The backing file's descriptor of an open regular file.
int file_descriptor(const fuse_file_info& fi);

}  // namespace sluice::slowfs
