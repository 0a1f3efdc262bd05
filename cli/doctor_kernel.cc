// The kernel's features, found by trying them.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/io_uring.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/doctor.h"
#include "cli/files.h"
#include "cli/page_cache.h"
#include "protocol/pagemap.h"
#include "protocol/unique_fd.h"

namespace sluice::cli {
namespace {

constexpr size_t kMapped = 65536;

// Not in the headers of the building machine, which may be older.
constexpr int kGuardInstall = 102;

// One page of a file in memory, mapped as a dataset would be.
class FilePage {
 public:
  FilePage() : file_(memfd_create("sluice-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    if (!file_ || ftruncate(file_.get(), kMapped) != 0) return;
    void* at = mmap(nullptr, kMapped, PROT_READ, MAP_SHARED, file_.get(), 0);
    if (at != MAP_FAILED) at_ = at;
  }
  FilePage(const FilePage&) = delete;
  FilePage& operator=(const FilePage&) = delete;
  ~FilePage() {
    if (at_ != nullptr) munmap(at_, kMapped);
  }

  int file() const { return file_.get(); }
  void* at() const { return at_; }

 private:
  UniqueFd file_;
  void* at_ = nullptr;
};

Finding kernel_version() {
  utsname name{};
  uname(&name);
  return {"kernel", Level::kGood, fmt::format("{} {}", name.sysname, name.release),
          "What counts is what it can do, below.", ""};
}

Finding shared_memory(const FilePage& page) {
  Finding finding{"shared_memory", Level::kGood, "works",
                  "Job and optimizer share an event ring in a sealed memfd.", ""};
  if (page.at() == nullptr || fcntl(page.file(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
    finding.level = Level::kBroken;
    finding.value = fmt::format("refused: {}", strerror(errno));
    finding.mend = "Allow memfd_create and its seals (a seccomp filter of a container?).";
  }
  return finding;
}

Finding guard_regions(const FilePage& page) {
  if (page.at() != nullptr && madvise(page.at(), kMapped, kGuardInstall) == 0) {
    return {"guard_regions", Level::kGood, "works on files",
            "Checkpoints behind the reader cost no kernel mapping each.", ""};
  }
  return {"guard_regions", Level::kNote, fmt::format("not for files: {}", strerror(errno)),
          "Checkpoints behind the reader are single protected pages, each of which uses up to two "
          "of vm.max_map_count; Sluice keeps within a budget of them.",
          "Linux 6.15 or newer has guard regions for files."};
}

Finding residency(const FilePage& page) {
  uint64_t pages = 0;
  if (page.file() >= 0 && cachestat_pages(page.file(), 0, kMapped, &pages)) {
    return {"cachestat", Level::kGood, "works",
            "The optimizer checks what it pre-cached without mapping anybody's file.", ""};
  }
  return {"cachestat", Level::kNote, fmt::format("missing: {}", strerror(errno)),
          "The optimizer asks mincore instead, which is right only about files that the "
          "user owns or may write.",
          "Linux 6.5 or newer has cachestat."};
}

Finding pagemap_scan(const FilePage& page) {
  const UniqueFd map(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  protocol::PagemapScan scan{};
  protocol::PageRegion regions[4];
  scan.size = sizeof scan;
  scan.start = reinterpret_cast<uint64_t>(page.at());
  scan.end = scan.start + kMapped;
  scan.vec = reinterpret_cast<uint64_t>(regions);
  scan.vec_len = 4;
  scan.category_anyof_mask = protocol::kPageIsPresent;
  scan.return_mask = protocol::kPageIsPresent;
  if (page.at() != nullptr && map && ioctl(map.get(), protocol::kPagemapScan, &scan) >= 0) {
    return {"pagemap_scan", Level::kGood, "works",
            "A mapping is observed by one call for each look at its page table.", ""};
  }
  const char* reason = strerror(errno);
  return {"pagemap_scan", map ? Level::kNote : Level::kWarn, fmt::format("missing: {}", reason),
          map ? "Observation reads /proc/PID/pagemap piece by piece, at some more processor time."
              : "/proc/PID/pagemap cannot be read: mappings cannot be observed, use checkpoints.",
          map ? "Linux 6.7 or newer has it." : "Set SLUICE_CHECKPOINT=cell."};
}

Finding io_uring() {
  io_uring_params parameters{};
  const UniqueFd ring(static_cast<int>(syscall(SYS_io_uring_setup, 8, &parameters)));
  const int problem = errno;
  const std::string disabled = read_word("/proc/sys/kernel/io_uring_disabled");
  const std::string sysctl =
      disabled.empty() ? "" : fmt::format(" (kernel.io_uring_disabled = {})", disabled);
  if (ring) {
    return {"io_uring", Level::kGood, "works" + sysctl,
            "The optimizer has many reads in flight with little processor time.", ""};
  }
  std::string mend = "Use Linux 5.1 or newer, built with io_uring.";
  if (disabled == "1" || disabled == "2") {
    mend = "sysctl kernel.io_uring_disabled=0, if your administrator agrees.";
  } else if (problem == EPERM || problem == EACCES) {
    mend = "Allow io_uring in the container's seccomp profile.";
  } else if (problem == ENOMEM) {
    mend = "Raise the memlock limit (ulimit -l).";
  }
  return {"io_uring", Level::kNote, fmt::format("refused: {}{}", strerror(problem), sysctl),
          "Threads that call pread take over: the same bytes for more processor time.", mend};
}

}  // namespace

void probe_kernel(Findings* findings) {
  const FilePage page;
  findings->push_back(kernel_version());
  findings->push_back(residency(page));
  findings->push_back(pagemap_scan(page));
  findings->push_back(guard_regions(page));
  findings->push_back(io_uring());
  findings->push_back(shared_memory(page));
}

}  // namespace sluice::cli
