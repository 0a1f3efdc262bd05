#include "cli/bench_storage.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <random>
#include <thread>

#include "cli/tree.h"
#include "cli/work_queue.h"
#include "optimizer/io/residency.h"
#include "policy/util/interval_set.h"
#include "protocol/page.h"
#include "protocol/unique_fd.h"

namespace sluice::cli {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kLarge = 16 << 20;  // bytes from which a file is read in blocks
constexpr size_t kMostFiles = 20000;
constexpr size_t kMostLarge = 64;  // that are opened at a time
constexpr unsigned kFinders = 16;  // threads
constexpr uint64_t kMostLatencyReads = 64;
constexpr milliseconds kLatencyTime{800};  // of each phase
constexpr milliseconds kInOrderTime{1000};
constexpr milliseconds kDepthTime{400};
constexpr uint64_t kInOrderBytes = 128 << 10;  // of one call
constexpr uint64_t kMostReadAhead = 32 << 20;
constexpr uint64_t kShareInOrder = 4;   // of a file: that part at most is read in order
constexpr uint64_t kPagesOfBlock = 16;  // that are read for the latency
constexpr size_t kRounds = 2;           // requests that each thread makes at least
constexpr double kNearlyBest = 0.95;

struct Block {
  int file = -1;
  uint64_t offset = 0;
};

class Meter {
 public:
  Meter(const BenchFiles& files, BenchClock::time_point until) : files_(files), until_(until) {}

  BenchResult run() {
    open_large();
    if (!blocks_.empty()) {
      measure_latency();
      measure_in_order();
      measure_depths(
          blocks_.size(), &next_block_, [this] { return read_block(); }, &result_.large);
    }
    std::mt19937 chance(1);
    for (const BenchFiles::File& file : files_.small) small_.push_back(&file);
    std::shuffle(small_.begin(), small_.end(), chance);
    measure_depths(
        small_.size(), &next_small_, [this] { return read_small(); }, &result_.small);
    return std::move(result_);
  }

 private:
  void open_large();
  void measure_latency();
  void measure_in_order();
  using Rates = std::array<BenchRate, kBenchDepths.size()>;
  // Each depth may read its part of the `count` that there are, from *next on, so that some are
  // left for the deepest.
  void measure_depths(size_t count, std::atomic<size_t>* next, const std::function<bool()>& request,
                      Rates* rates);
  BenchRate at_depth(unsigned depth, size_t most, const std::function<bool()>& request);
  // Each reads one, and returns false when none is left.
  bool read_block();
  bool read_small();
  void note_error(const std::string& path) {
    const std::lock_guard lock(mutex_);
    if (result_.problem.empty()) result_.problem = path + ": " + strerror(errno);
  }
  const Block* next_block() {
    const size_t at = next_block_++;
    return at < blocks_.size() ? &blocks_[at] : nullptr;
  }
  BenchClock::time_point end_of(milliseconds phase) const {
    return std::min(until_, BenchClock::now() + phase);
  }
  static void drop(int file, uint64_t offset, uint64_t length) {
    posix_fadvise(file, static_cast<off_t>(offset), static_cast<off_t>(length),
                  POSIX_FADV_DONTNEED);
  }

  const BenchFiles& files_;
  const BenchClock::time_point until_;
  BenchResult result_;
  std::deque<UniqueFd> open_;
  std::vector<Block> blocks_;  // not cached, in an order of chance
  std::vector<const BenchFiles::File*> small_;
  std::atomic<size_t> next_block_{0}, next_small_{0};
  std::atomic<uint64_t> requests_{0}, bytes_{0};
  std::mutex mutex_;  // of result_.problem
};

void Meter::open_large() {
  std::mt19937 chance(1);
  std::vector<BenchFiles::File> some = files_.large;
  std::shuffle(some.begin(), some.end(), chance);
  if (some.size() > kMostLarge) some.resize(kMostLarge);
  for (const BenchFiles::File& file : some) {
    UniqueFd fd(open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (!fd) {
      note_error(file.path);
      continue;
    }
    posix_fadvise(fd.get(), 0, 0, POSIX_FADV_RANDOM);  // a request reads what it asks for
    uint64_t cached = 0;
    if (!optimizer::cached_exactly(fd.get(), {0, file.bytes}, false, &cached)) {
      result_.cache_known = false;
      cached = 0;
    }
    std::vector<policy::Range> parts{{0, file.bytes}};
    if (cached > 0) parts = optimizer::uncached_parts(fd.get(), file.bytes, false);
    for (const policy::Range& part : parts) {
      for (uint64_t at = part.begin; at + kBenchBlock <= part.end; at += kBenchBlock) {
        blocks_.push_back({fd.get(), at});
      }
    }
    open_.push_back(std::move(fd));
  }
  std::shuffle(blocks_.begin(), blocks_.end(), chance);
  result_.blocks = blocks_.size();
}

void Meter::measure_latency() {
  const BenchClock::time_point end = end_of(kLatencyTime);
  std::vector<double> took;
  const Block* block = nullptr;
  while (took.size() < kMostLatencyReads && BenchClock::now() < end) {
    const uint64_t page = took.size() % kPagesOfBlock;
    if (page == 0) block = next_block();
    if (block == nullptr) break;
    const BenchClock::time_point began = BenchClock::now();
    const uint64_t at = block->offset + page * (kBenchBlock / kPagesOfBlock);
    if (read_through(block->file, at, kPage) <= 0) break;
    took.push_back(std::chrono::duration<double, std::nano>(BenchClock::now() - began).count());
    drop(block->file, at, kPage);
  }
  if (took.empty()) return;
  std::nth_element(took.begin(), took.begin() + static_cast<ptrdiff_t>(took.size() / 2),
                   took.end());
  result_.latency_ns = took[took.size() / 2];
  result_.latency_reads = took.size();
}

// As a command that reads its input from its beginning: what is cached there is passed over.
void Meter::measure_in_order() {
  const BenchClock::time_point began = BenchClock::now(), end = end_of(kInOrderTime);
  const int file = blocks_.front().file;
  uint64_t first = UINT64_MAX, blocks = 0;
  for (const Block& block : blocks_) {
    if (block.file != file) continue;
    first = std::min(first, block.offset);
    ++blocks;
  }
  const uint64_t most = first + blocks / kShareInOrder * kBenchBlock;
  posix_fadvise(file, 0, 0, POSIX_FADV_NORMAL);
  uint64_t at = first;
  while (BenchClock::now() < end && at < most) {
    const ssize_t got = read_through(file, at, kInOrderBytes);
    if (got <= 0) break;
    at += static_cast<uint64_t>(got);
    ++result_.in_order.requests;
  }
  result_.in_order.seconds = std::chrono::duration<double>(BenchClock::now() - began).count();
  result_.in_order.bytes = at - first;
  posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM);
  // What was read, and a window that the kernel may have read ahead of it, is used up.
  const uint64_t used = at + std::min(kMostReadAhead, most - first);
  std::erase_if(blocks_, [&](const Block& block) {
    if (block.file != file || block.offset >= used) return false;
    drop(file, block.offset, kBenchBlock);
    return true;
  });
}

bool Meter::read_block() {
  const Block* block = next_block();
  if (block == nullptr) return false;
  const ssize_t got = read_through(block->file, block->offset, kBenchBlock);
  if (got < 0) {
    note_error("a large file");
    return false;
  }
  ++requests_;
  bytes_ += static_cast<uint64_t>(got);
  drop(block->file, block->offset, kBenchBlock);
  return true;
}

bool Meter::read_small() {
  const size_t at = next_small_++;
  if (at >= small_.size()) return false;
  const std::string& path = small_[at]->path;
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  struct stat status {};
  if (!fd || fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    if (!fd) note_error(path);
    return true;
  }
  const auto size = static_cast<uint64_t>(status.st_size);
  uint64_t cached = 0;
  if (optimizer::cached_exactly(fd.get(), {0, size}, false, &cached) && cached > 0) return true;
  const ssize_t got = read_through(fd.get(), 0, size);
  if (got < 0) note_error(path);
  if (got <= 0) return true;
  ++requests_;
  bytes_ += static_cast<uint64_t>(got);
  drop(fd.get(), 0, size);
  return true;
}

void Meter::measure_depths(size_t count, std::atomic<size_t>* next,
                           const std::function<bool()>& request, Rates* rates) {
  for (size_t at = 0; at < kBenchDepths.size() && *next < count; ++at) {
    const size_t most = (count - *next) / (kBenchDepths.size() - at);
    if (most < kRounds * kBenchDepths[at]) return;  // too few to fill the queue
    (*rates)[at] = at_depth(kBenchDepths[at], most, request);
  }
}

BenchRate Meter::at_depth(unsigned depth, size_t most, const std::function<bool()>& request) {
  requests_ = 0;
  bytes_ = 0;
  std::atomic<size_t> begun{0};
  const BenchClock::time_point began = BenchClock::now(), end = end_of(kDepthTime);
  if (began >= end) return {};
  const auto work = [&] {
    while (BenchClock::now() < end && begun++ < most && request()) {
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < depth; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return {requests_, bytes_, std::chrono::duration<double>(BenchClock::now() - began).count()};
}

}  // namespace

int find_files(const std::string& path, BenchClock::time_point until, BenchFiles* files) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return errno;
  std::mutex mutex;
  WorkQueue queue;
  const auto add = [&](const std::string& found, const struct stat& about) {
    const auto bytes = static_cast<uint64_t>(about.st_size);
    if (!S_ISREG(about.st_mode) || bytes == 0) return;
    const std::lock_guard lock(mutex);
    (bytes >= kLarge ? files->large : files->small).push_back({found, bytes});
  };
  if (!S_ISDIR(status.st_mode)) {
    add(path, status);
    return 0;
  }
  int first_error = 0;
  std::atomic<size_t> count{0};
  const std::function<void(const std::string&)> list = [&](const std::string& folder) {
    const int error = list_folder(folder, [&](const std::string& found, EntryKind kind) {
      if (BenchClock::now() >= until || ++count > kMostFiles) {
        files->complete = false;
        return queue.stop();
      }
      if (kind == EntryKind::kFolder) {
        queue.add_last([&list, found] { list(found); });
      } else {
        queue.add_last([&add, found] {
          struct stat about {};
          if (stat(found.c_str(), &about) == 0) add(found, about);
        });
      }
    });
    if (error != 0 && folder == path) first_error = error;
  };
  queue.add_last([&] { list(path); });
  queue.run(kFinders);
  return first_error;
}

BenchResult measure(const BenchFiles& files, BenchClock::time_point until) {
  return Meter(files, until).run();
}

size_t best_depth(const std::array<BenchRate, kBenchDepths.size()>& rates) {
  double most = 0;
  for (const BenchRate& rate : rates) most = std::max(most, rate.bytes_per_second());
  for (size_t at = 0; at < rates.size(); ++at) {
    if (rates[at].bytes_per_second() >= kNearlyBest * most) return at;
  }
  return 0;
}

}  // namespace sluice::cli
