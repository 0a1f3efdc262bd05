// `sluice warm`: reads files into the page cache, many at a time.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "cli/commands.h"
#include "cli/files.h"
#include "cli/program.h"
#include "cli/text.h"
#include "cli/tree.h"
#include "cli/work_queue.h"
#include "optimizer/io/memory.h"
#include "optimizer/io/residency.h"
#include "protocol/unique_fd.h"

namespace sluice::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kPiece = 4 << 20;    // bytes that one thread reads of a file at a time
constexpr uint64_t kProbe = 1 << 20;    // bytes of a file by which its mount is judged
constexpr size_t kMostProblems = 5;     // that are printed
constexpr double kShareOfMemory = 0.9;  // of what is available; the rest is for the job itself
constexpr std::chrono::milliseconds kProgress{500};

// Of one argument.
struct Totals {
  std::atomic<uint64_t> files{0}, bytes{0};
  std::atomic<uint64_t> cached{0};   // of `bytes`, before anything was read
  std::atomic<uint64_t> read{0};     // pieces that were not wholly cached
  std::atomic<uint64_t> unknown{0};  // files of which the kernel does not say what is cached
};

struct OpenFile {
  UniqueFd fd;
  std::string path;
  uint64_t device = 0, size = 0;
  std::atomic<uint64_t> pieces{0};  // not read yet
  Totals* totals = nullptr;
};

class Warming {
 public:
  // `limit`: bytes that may be cached of the files. `check`: nothing is read.
  Warming(uint64_t limit, bool check) : limit_(limit), check_(check) {}

  void add(const std::string& path, Totals* totals) {
    queue_.add_last([=, this] { visit(path, totals); });
  }
  void run(unsigned threads) { queue_.run(threads); }

  bool out_of_memory() const { return out_of_memory_; }
  size_t problems() const { return problems_; }

 private:
  void visit(const std::string& path, Totals* totals);
  void visit_folder(const std::string& path, Totals* totals);
  void visit_file(const std::string& path, Totals* totals);
  void read_piece(OpenFile& file, uint64_t offset);
  void judge_mount(const OpenFile& file);
  void report(const std::string& path, const char* problem);

  const uint64_t limit_;
  const bool check_;
  WorkQueue queue_;
  std::atomic<uint64_t> charged_{0};  // bytes of files that are cached, or being read
  std::atomic<bool> out_of_memory_{false};
  std::atomic<size_t> problems_{0};
  std::mutex mutex_;                              // of the members below
  std::set<std::pair<uint64_t, uint64_t>> seen_;  // devices and inodes
  std::set<uint64_t> judged_;                     // devices
};

void Warming::report(const std::string& path, const char* problem) {
  const size_t number = ++problems_;
  if (number <= kMostProblems) failed(0, fmt::format("{}: {}", one_line(path), problem));
  if (number == kMostProblems + 1) failed(0, "more problems are only counted");
}

// An argument: links are followed.
void Warming::visit(const std::string& path, Totals* totals) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return report(path, strerror(errno));
  if (S_ISDIR(status.st_mode)) return visit_folder(path, totals);
  if (S_ISREG(status.st_mode)) return visit_file(path, totals);
  report(path, "neither a regular file nor a folder");
}

void Warming::visit_folder(const std::string& path, Totals* totals) {
  const int error = list_folder(path, [&](const std::string& found, EntryKind kind) {
    queue_.add_last([=, this] {
      kind == EntryKind::kFolder ? visit_folder(found, totals) : visit_file(found, totals);
    });
  });
  if (error != 0) report(path, strerror(error));
}

void Warming::visit_file(const std::string& path, Totals* totals) {
  const auto file = std::make_shared<OpenFile>();
  file->fd.reset(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  struct stat status {};
  if (!file->fd || fstat(file->fd.get(), &status) != 0) return report(path, strerror(errno));
  if (!S_ISREG(status.st_mode)) return;  // it has been replaced since it was listed
  {
    const std::lock_guard lock(mutex_);
    if (!seen_.emplace(status.st_dev, status.st_ino).second) return;
  }
  file->path = path;
  file->device = status.st_dev;
  file->size = static_cast<uint64_t>(status.st_size);
  file->totals = totals;
  ++totals->files;
  totals->bytes += file->size;
  if (check_) {
    uint64_t cached = 0;
    if (file->size > 0 &&
        !optimizer::cached_exactly(file->fd.get(), {0, file->size}, false, &cached)) {
      ++totals->unknown;
    }
    totals->cached += std::min(cached, file->size);
    return;
  }
  file->pieces = (file->size + kPiece - 1) / kPiece;
  // From the last to the first, since each goes before those that wait.
  for (uint64_t piece = file->pieces; piece-- > 0;) {
    queue_.add_next([=, this] { read_piece(*file, piece * kPiece); });
  }
}

void Warming::read_piece(OpenFile& file, uint64_t offset) {
  const uint64_t length = std::min(kPiece, file.size - offset);
  if (charged_.fetch_add(length) + length > limit_) {
    charged_ -= length;
    out_of_memory_ = true;
    return queue_.stop();
  }
  uint64_t cached = 0;
  const bool known =
      optimizer::cached_exactly(file.fd.get(), {offset, offset + length}, false, &cached);
  cached = known ? std::min(cached, length) : 0;
  file.totals->cached += cached;
  if (cached < length) {
    const ssize_t got = read_through(file.fd.get(), offset, length);
    if (got < 0) return report(file.path, strerror(errno));
    file.totals->read += std::max(static_cast<uint64_t>(got), cached) - cached;
  }
  if (--file.pieces == 0) judge_mount(file);
}

// Some mounts empty a file's cache when it is opened: there all was for nothing.
void Warming::judge_mount(const OpenFile& file) {
  {
    const std::lock_guard lock(mutex_);
    if (!judged_.insert(file.device).second) return;
  }
  const UniqueFd again(open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  const uint64_t length = std::min(kProbe, file.size);
  uint64_t cached = 0;
  if (!again || !optimizer::cached_exactly(again.get(), {0, length}, false, &cached)) return;
  if (cached * 2 < length) {
    report(file.path, "what is read there is no longer cached after an open: see `sluice doctor`");
  }
}

// The process that reads, which SIGKILL ends as soon as its requests are answered: on slow storage
// that may be long after this one has ended.
volatile pid_t reader = 0;

constexpr char kInterrupted[] = "sluice: interrupted; what was read stays cached\n";

void on_interrupt(int number) {
  kill(reader, SIGKILL);
  [[maybe_unused]] const ssize_t written = write(2, kInterrupted, sizeof kInterrupted - 1);
  raise(number);  // SA_RESETHAND: it ends the process once this returns
}

void end_at_once_when_interrupted() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESETHAND;
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction before {};
    if (sigaction(number, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) {
      sigaction(number, &action, nullptr);
    }
  }
}

// Copies what the reader prints until it has ended.
void forward(int output, int errors) {
  pollfd ends[] = {{output, POLLIN, 0}, {errors, POLLIN, 0}};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    if (poll(ends, 2, -1) < 0 && errno != EINTR) return;
    for (int at = 0; at < 2; ++at) {
      char block[4096];
      if (ends[at].fd < 0 || ends[at].revents == 0) continue;
      const ssize_t got = read(ends[at].fd, block, sizeof block);
      if (got <= 0) {
        ends[at].fd = -1;
      } else {
        write_fully(at + 1, {block, static_cast<size_t>(got)});
      }
    }
  }
}

// Repeats a line on the terminal while it exists.
class Progress {
 public:
  Progress(const Totals* totals, size_t count, bool shown) : totals_(totals), count_(count) {
    if (shown) thread_ = std::thread([this] { show(); });
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
    fmt::print(stderr, "\r\033[K");
  }

 private:
  void show() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kProgress, [this] { return over_; })) {
      uint64_t files = 0, bytes = 0, done = 0;
      for (size_t at = 0; at < count_; ++at) {
        files += totals_[at].files;
        bytes += totals_[at].bytes;
        done += totals_[at].cached + totals_[at].read;
      }
      fmt::print(stderr, "\r\033[K{} of {} in {} files", format_bytes(static_cast<double>(done)),
                 format_bytes(static_cast<double>(bytes)), files);
      fflush(stderr);
    }
  }

  const Totals* const totals_;
  const size_t count_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

std::string share_of(uint64_t part, uint64_t whole) {
  return whole == 0 ? "100 %"
                    : fmt::format("{:.0f} %",
                                  100 * static_cast<double>(part) / static_cast<double>(whole));
}

void print_cached(const std::vector<std::string>& paths, const Totals* totals) {
  std::vector<std::vector<std::string>> rows{{"files", "bytes", "cached", "", "path"}};
  for (size_t at = 0; at < paths.size(); ++at) {
    const Totals& one = totals[at];
    const bool known = one.unknown == 0;
    rows.push_back({fmt::format("{}", one.files.load()),
                    format_bytes(static_cast<double>(one.bytes)),
                    known ? format_bytes(static_cast<double>(one.cached)) : "unknown",
                    known ? share_of(one.cached, one.bytes) : "", one_line(paths[at])});
  }
  fmt::print("{}", columns(rows, "rrrrl"));
}

// `terminal`: standard error is one, and shows the progress.
int read_all(const WarmOptions& options, bool terminal) {
  const uint64_t room = static_cast<uint64_t>(
      static_cast<double>(policy::memory_left(optimizer::MemoryReader().read(), 0)) *
      kShareOfMemory);
  const uint64_t limit = options.memory != 0 ? std::min(options.memory, room) : room;
  Warming warming(limit, options.check);
  const auto totals = std::make_unique<Totals[]>(options.paths.size());
  for (size_t at = 0; at < options.paths.size(); ++at) {
    warming.add(options.paths[at], &totals[at]);
  }
  const Clock::time_point began = Clock::now();
  {
    const Progress progress(totals.get(), options.paths.size(), terminal);
    warming.run(options.depth);
  }
  const std::chrono::duration<double> took = Clock::now() - began;
  if (options.check) {
    print_cached(options.paths, totals.get());
  } else {
    uint64_t files = 0, cached = 0, read = 0;
    for (size_t at = 0; at < options.paths.size(); ++at) {
      files += totals[at].files;
      cached += totals[at].cached;
      read += totals[at].read;
    }
    fmt::print("read {} of {} files in {}, {} a second; {} were cached already\n",
               format_bytes(static_cast<double>(read)), files, format_time(took.count() * 1e9),
               format_bytes(static_cast<double>(read) / std::max(took.count(), 1e-9)),
               format_bytes(static_cast<double>(cached)));
  }
  if (warming.out_of_memory()) {
    return failed(kExitProblem, fmt::format("stopped: the files take more than {}, {}",
                                            format_bytes(static_cast<double>(limit)),
                                            limit == room ? "what memory can hold" : "the limit"));
  }
  return fflush(stdout) == 0 && warming.problems() == 0 ? 0 : kExitProblem;
}

}  // namespace

int warm(const WarmOptions& options) {
  int output[2], errors[2];
  if (pipe2(output, O_CLOEXEC) != 0 || pipe2(errors, O_CLOEXEC) != 0) {
    return failed(kExitCannotRun, strerror(errno));
  }
  UniqueFd from[] = {UniqueFd(output[0]), UniqueFd(errors[0])};
  UniqueFd to[] = {UniqueFd(output[1]), UniqueFd(errors[1])};
  const bool terminal = isatty(2) == 1;
  const pid_t self = getpid();
  reader = fork();
  if (reader < 0) return failed(kExitCannotRun, strerror(errno));
  if (reader == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != self) _exit(kExitProblem);
    signal(SIGINT, SIG_IGN);  // of the whole group: the parent decides
    dup2(to[0].get(), 1);
    dup2(to[1].get(), 2);
    const int status = read_all(options, terminal);
    fflush(nullptr);
    _exit(status);
  }
  end_at_once_when_interrupted();
  for (UniqueFd& end : to) end.reset();
  forward(from[0].get(), from[1].get());
  int status = 0;
  while (waitpid(reader, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return failed(kExitProblem,
                fmt::format("what reads was ended by {}", strsignal(WTERMSIG(status))));
}

}  // namespace sluice::cli
