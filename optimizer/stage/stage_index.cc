#include "optimizer/stage/stage_index.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>

#include "protocol/stage_io.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace sluice::optimizer {

using protocol::Stage;
using protocol::StageCopy;
using protocol::StageKey;
using protocol::StageState;

namespace {

// A system call that returns a negative errno rather than -1, as the kernel does.
long kernel(long number, long a, long b, long c) {
  const long result = syscall(number, a, b, c);
  return result == -1 ? -errno : result;
}

// A number that no other process of this boot gets, while a pid may be reused; 0 where the kernel
// has none (before Linux 6.9).
uint64_t process_inode() {
  constexpr long kPidFileSystem = 0x50494446;
  const UniqueFd self(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  struct stat about {};
  struct statfs system {};
  if (!self || fstatfs(self.get(), &system) != 0 || system.f_type != kPidFileSystem) return 0;
  return fstat(self.get(), &about) == 0 ? about.st_ino : 0;
}

}  // namespace

StageIndex::~StageIndex() {
  close();
  if (stage_ != nullptr) munmap(stage_, sizeof(Stage));
}

bool StageIndex::create(const std::string& folder, int watch_fd, std::string* reason) {
  fd_.reset(memfd_create("sluice-stage", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd_ || ftruncate(fd_.get(), sizeof(Stage)) != 0) {
    *reason = std::string("the stage's index: ") + strerror(errno);
    return false;
  }
  void* memory = mmap(nullptr, sizeof(Stage), PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  if (memory == MAP_FAILED ||
      fcntl(fd_.get(), F_ADD_SEALS,
            F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0) {
    *reason = std::string("the stage's index: ") + strerror(errno);
    if (memory != MAP_FAILED) munmap(memory, sizeof(Stage));
    return false;
  }
  stage_ = static_cast<Stage*>(memory);
  protocol::StageHeader& header = stage_->header;
  struct stat copies {};
  if (folder.size() >= protocol::kStageFolder || stat(folder.c_str(), &copies) != 0 ||
      !protocol::read_access_identity(kernel, &header.identity) ||
      getrandom(header.secret, sizeof header.secret, 0) != sizeof header.secret) {
    *reason = "the stage's index cannot be made";
    return false;
  }
  header.magic = protocol::kStageMagic;
  header.version = protocol::kVersion;
  header.size = sizeof(Stage);
  header.copy_device = copies.st_dev;
  header.process = getpid();
  header.process_inode = process_inode();
  header.watch_fd = watch_fd;
  // Jobs of this user check that inotify's queue (pidfd_getfd). Where Yama restricts this to
  // ancestors, this call permits it; without Yama the call fails, and is not needed.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  memcpy(header.folder, folder.c_str(), folder.size() + 1);
  return true;
}

uint32_t StageIndex::add(const std::string& path) {
  if (path.size() >= protocol::kStagePath) return kNone;
  const StageKey key = protocol::stage_key(stage_->header.secret, path.data(), path.size());
  const uint64_t groups[] = {key.low % protocol::kStageGroups,
                             (key.low >> 32) % protocol::kStageGroups};
  uint64_t bucket = UINT64_MAX;
  for (const uint64_t group : groups) {
    for (uint64_t place = 0; place < protocol::kStageGroupSize && bucket == UINT64_MAX; ++place) {
      if (stage_->buckets[group][place].load(std::memory_order_relaxed) == 0) {
        bucket = group * protocol::kStageGroupSize + place;
      }
    }
  }
  if (bucket == UINT64_MAX || (free_.empty() && next_ == protocol::kStageFiles)) return kNone;
  uint32_t record = next_;
  if (free_.empty()) {
    ++next_;
    bucket_.push_back(0);
    keys_.emplace_back();
  } else {
    record = free_.back();
    free_.pop_back();
  }
  bucket_[record] = bucket;
  keys_[record] = key;
  StageCopy copy{};
  copy.key = key;
  protocol::write_copy(stage_->files[record], copy, StageState::kFetching);
  stage_->buckets[bucket / protocol::kStageGroupSize][bucket % protocol::kStageGroupSize].store(
      key.high >> 32 << 32 | (record + 1), std::memory_order_release);
  stage_->header.files.store(++used_, std::memory_order_relaxed);
  return record;
}

void StageIndex::wake(uint32_t record) {
  syscall(SYS_futex, &stage_->files[record].state, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void StageIndex::note_device(uint64_t device) {
  for (std::atomic<uint64_t>& known : stage_->header.devices) {
    const uint64_t value = known.load(std::memory_order_relaxed);
    if (value == device) return;
    if (value == 0) {
      known.store(device, std::memory_order_relaxed);
      return;
    }
  }
  // No room for more devices: this value matches every device.
  stage_->header.devices[0].store(UINT64_MAX, std::memory_order_relaxed);
}

void StageIndex::publish(uint32_t record, StageCopy copy) {
  copy.key = keys_[record];
  note_device(copy.stat.device);
  protocol::write_copy(stage_->files[record], copy, StageState::kStaged);
  wake(record);
}

void StageIndex::validated(uint32_t record, uint64_t at_ns) {
  StageCopy copy;
  StageState state;
  if (!protocol::read_copy(stage_->files[record], &copy, &state)) return;
  copy.validated_ns = at_ns;
  protocol::write_copy(stage_->files[record], copy, state);
}

bool StageIndex::read(uint32_t record, StageCopy* copy, StageState* state) const {
  return protocol::read_copy(stage_->files[record], copy, state);
}

uint32_t StageIndex::find(const StageKey& key) const {
  StageCopy copy;
  StageState state;
  return protocol::find_copy(*stage_, key, &copy, &state);
}

void StageIndex::remove(uint32_t record) {
  const uint64_t bucket = bucket_[record];
  stage_->buckets[bucket / protocol::kStageGroupSize][bucket % protocol::kStageGroupSize].store(
      0, std::memory_order_release);
  protocol::write_copy(stage_->files[record], StageCopy{}, StageState::kFree);
  wake(record);
  free_.push_back(record);
  stage_->header.files.store(--used_, std::memory_order_relaxed);
}

void StageIndex::draining_begins() {
  if (stage_ == nullptr || draining_++ != 0) return;
  stage_->header.draining.fetch_add(1, std::memory_order_seq_cst);
}

void StageIndex::draining_ends() {
  if (stage_ == nullptr || --draining_ != 0) return;
  stage_->header.draining.fetch_add(1, std::memory_order_seq_cst);
}

void StageIndex::beat(uint64_t now_ns) {
  if (stage_ != nullptr) stage_->header.heartbeat_ns.store(now_ns, std::memory_order_relaxed);
}

void StageIndex::close() {
  if (stage_ != nullptr) stage_->header.closed.store(1, std::memory_order_release);
}

}  // namespace sluice::optimizer
