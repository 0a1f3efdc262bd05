// The file system itself: what SOURCE holds, with the latency, link and faults of the settings.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "bench/slowfs/gate.h"
#include "bench/slowfs/handles.h"
#include "bench/slowfs/inodes.h"
#include "bench/slowfs/ledger.h"
#include "bench/slowfs/pacer.h"
#include "bench/slowfs/service.h"
#include "bench/slowfs/settings.h"

struct fuse_lowlevel_ops;
struct fuse_session;

namespace sluice::slowfs {

// Names of the virtual files in the root.
inline constexpr const char* kStatsName = ".slowfs-stats";
inline constexpr const char* kDropName = ".slowfs-drop";

// One mount. Constant after construction but for the members that guard themselves. Lives as
// long as the session whose userdata it is.
struct Filesystem {
  // `root` is a descriptor of SOURCE, opened before anything is mounted over it; owned.
  Filesystem(const Settings& settings, int root);
  ~Filesystem();
  Filesystem(const Filesystem&) = delete;
  Filesystem& operator=(const Filesystem&) = delete;

  // Sleeps until the answer to a request, due at `due_ns` and of `bytes`, is to be given. Any
  // thread.
  void wait_for(uint64_t due_ns, uint64_t bytes);

  // The current figures as JSON text. Any thread.
  std::string figures() const;

  const Settings settings;
  const int root;
  const uint64_t meta_ns;
  const uint64_t read_ns;
  const uint64_t started_ns;
  std::function<void()> on_mounted;  // called once the kernel knows what the mount can do
  fuse_session* session = nullptr;   // not owned; set before the first request
  Service service;
  // The thread that measures the overhead; its calls are neither counted nor delayed.
  std::atomic<int> measuring_tid{0};
  Pacer pacer;
  Gate gate;
  Ledger ledger;
  Inodes inodes;
  Handles handles;
};

// The operations; their userdata is a Filesystem.
const fuse_lowlevel_ops& operations();

}  // namespace sluice::slowfs
