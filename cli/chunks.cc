// `sluice chunks make`, `tune` and `rm`.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "cli/bench_storage.h"
#include "cli/chunk_advice.h"
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/program.h"
#include "cli/run_settings.h"
#include "cli/text.h"
#include "cli/tree.h"
#include "cli/work_queue.h"
#include "optimizer/packs/checksum.h"
#include "optimizer/packs/pack_file.h"
#include "optimizer/packs/pack_folder.h"
#include "policy/util/random.h"
#include "protocol/unique_fd.h"

namespace sluice::cli {
namespace {

using optimizer::pack_name;
using protocol::PackVersion;

constexpr size_t kMostProblems = 5;     // that are printed
constexpr int64_t kSettledSeconds = 4;  // within them a change may leave a file's times as they are

PackVersion version_of(const struct stat& about) {
  return {about.st_ino,
          static_cast<uint64_t>(about.st_size),
          about.st_mtim.tv_sec,
          about.st_ctim.tv_sec,
          static_cast<uint32_t>(about.st_mtim.tv_nsec),
          static_cast<uint32_t>(about.st_ctim.tv_nsec)};
}

// Where a later change of the file shows in its times.
void wait_until_settled(const struct stat& about) {
  while (about.st_ctim.tv_sec + kSettledSeconds > time(nullptr)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

// All bytes of the file, and what it was. Returns "" or the problem.
std::string read_sample(const std::string& path, std::vector<char>* bytes, PackVersion* version) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  struct stat about {};
  if (!fd || fstat(fd.get(), &about) != 0) return strerror(errno);
  if (!S_ISREG(about.st_mode)) return "not a regular file";
  wait_until_settled(about);
  bytes->resize(static_cast<size_t>(about.st_size));
  const ssize_t got = read_fully(fd.get(), bytes->data(), bytes->size());
  if (got < 0) return strerror(errno);
  struct stat after {};
  *version = version_of(about);
  if (static_cast<size_t>(got) != bytes->size() || fstat(fd.get(), &after) != 0 ||
      version_of(after) != *version) {
    return "it changes while it is read";
  }
  return "";
}

class Making {
 public:
  Making(int folder, std::vector<std::string> files, uint32_t samples)
      : folder_(folder), files_(std::move(files)), samples_(samples) {}

  void run(unsigned depth) {
    for (uint32_t chunk = 0; chunk < chunks(); ++chunk) {
      queue_.add_last([this, chunk] { make(chunk); });
    }
    queue_.run(depth);
  }
  uint32_t chunks() const {
    return static_cast<uint32_t>((files_.size() + samples_ - 1) / samples_);
  }
  uint64_t made() const { return made_; }
  uint64_t already() const { return already_; }
  uint64_t bytes() const { return bytes_; }
  size_t problems() const { return problems_; }

 private:
  std::span<const std::string> members(uint32_t chunk) const {
    const size_t first = size_t{chunk} * samples_;
    return std::span(files_).subspan(first, std::min<size_t>(samples_, files_.size() - first));
  }
  bool is_there(uint32_t chunk) const;
  void make(uint32_t chunk);
  void report(const std::string& what, const std::string& problem);

  const int folder_;
  const std::vector<std::string> files_;
  const uint32_t samples_;
  WorkQueue queue_;
  std::atomic<uint64_t> made_{0}, already_{0}, bytes_{0};
  std::atomic<size_t> problems_{0};
};

void Making::report(const std::string& what, const std::string& problem) {
  const size_t number = ++problems_;
  if (number <= kMostProblems) failed(0, one_line(what + ": " + problem));
  if (number == kMostProblems + 1) failed(0, "more problems are only counted");
}

// The chunk has these files, as they are now. Its bytes have checksums of their own.
bool Making::is_there(uint32_t chunk) const {
  const auto opened = optimizer::PackFile::open(folder_, pack_name(chunk));
  const auto files = members(chunk);
  if (opened.file == nullptr || opened.file->entries().size() != files.size()) return false;
  return std::ranges::equal(
      opened.file->entries(), files, [&](const auto& entry, const auto& path) {
        struct stat about {};
        return opened.file->key(entry).path == path && stat(path.c_str(), &about) == 0 &&
               version_of(about) == entry.version;
      });
}

void Making::make(uint32_t chunk) {
  if (is_there(chunk)) {
    ++already_;
    return;
  }
  optimizer::PackBuilder builder;
  for (const std::string& path : members(chunk)) {
    std::vector<char> bytes;
    PackVersion version{};
    if (const std::string problem = read_sample(path, &bytes, &version); !problem.empty()) {
      report(path, problem);
      continue;
    }
    const uint64_t checksum = optimizer::Checksum::of(bytes.data(), bytes.size());
    const optimizer::PackKey key{path, 0, bytes.size()};
    if (!builder.add(key, version, std::move(bytes), checksum)) {
      report(path, "too large for a chunk");
    }
  }
  if (builder.entries().empty()) return;
  const int error = builder.write(folder_, pack_name(chunk));
  if (error != 0) {
    report(pack_name(chunk), strerror(error));
    if (error == ENOSPC || error == EDQUOT || error == EROFS) queue_.stop();
    return;
  }
  ++made_;
  bytes_ += builder.bytes();
}

// The regular files of all paths, each once, in an order that does not depend on that of folders.
std::vector<std::string> files_of(const std::vector<std::string>& paths, bool* good) {
  WorkQueue queue;
  std::mutex mutex;
  std::vector<std::string> files;
  const std::function<void(const std::string&)> visit = [&](const std::string& path) {
    const int error = list_folder(path, [&](const std::string& found, EntryKind kind) {
      if (kind == EntryKind::kFolder) {
        queue.add_last([&visit, found] { visit(found); });
        return;
      }
      const std::lock_guard lock(mutex);
      files.push_back(found);
    });
    if (error == 0) return;
    const std::lock_guard lock(mutex);
    failed(0, one_line(path + ": " + strerror(error)));
    *good = false;
  };
  for (const std::string& given : paths) {
    // As a job names it: links are not resolved.
    std::string path = std::filesystem::absolute(given).lexically_normal();
    if (path.size() > 1 && path.ends_with('/')) path.pop_back();
    struct stat about {};
    if (stat(path.c_str(), &about) != 0) {
      failed(0, one_line(given + ": " + strerror(errno)));
      *good = false;
    } else if (S_ISDIR(about.st_mode)) {
      queue.add_last([&visit, path] { visit(path); });
    } else {
      files.push_back(path);
    }
  }
  constexpr unsigned kThreads = 16;
  queue.run(kThreads);
  std::ranges::sort(files);
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

// Returns 0 or the exit status after an error message. No two processes have it at a time.
int open_chunks(const std::string& given, bool make, UniqueFd* folder, std::string* path) {
  std::string problem;
  const std::string base = chosen_cache_dir(given, &problem);
  if (base.empty()) return failed(kExitUsage, one_line("chunks: " + problem));
  int error = 0;
  *path = optimizer::chunks_folder(base);
  *folder = optimizer::open_packs_folder(*path, make, &error, &problem);
  if (!*folder) return failed(kExitProblem, one_line(problem));
  if (flock(folder->get(), LOCK_EX | LOCK_NB) != 0) {
    return failed(kExitProblem, one_line(*path + ": another `sluice chunks` is at work there"));
  }
  return 0;
}

// Removes what no writer is at, and packs from that number on. Returns how many packs.
uint64_t remove_from(int folder, uint32_t first) {
  optimizer::PackNames names;
  if (optimizer::list_packs(folder, &names) != 0) return 0;
  for (const std::string& name : names.leftovers) unlinkat(folder, name.c_str(), 0);
  uint64_t removed = 0;
  for (const uint32_t number : names.packs) {
    if (number >= first && unlinkat(folder, pack_name(number).c_str(), 0) == 0) ++removed;
  }
  return removed;
}

}  // namespace

int make_chunks(const MakeChunksOptions& options) {
  UniqueFd folder;
  std::string path;
  if (const int status = open_chunks(options.folder, true, &folder, &path)) return status;
  bool good = true;
  std::vector<std::string> files = files_of(options.paths, &good);
  if (files.empty()) return failed(kExitProblem, "chunks: there are no files");
  const size_t count = files.size();
  Random(mixed(options.seed)).shuffle(&files);
  Making making(folder.get(), std::move(files), options.samples);
  remove_from(folder.get(), making.chunks());
  making.run(options.depth);
  fmt::print("{}: {} files in {} chunks; {} made, {}; {} were there\n", one_line(path), count,
             making.chunks(), making.made(), format_bytes(static_cast<double>(making.bytes())),
             making.already());
  return fflush(stdout) == 0 && good && making.problems() == 0 ? 0 : kExitProblem;
}

int tune_chunks(const std::string& path) {
  BenchFiles files;
  BenchResult result;
  if (const int status = measure_path(path, &files, &result)) return status;
  const ChunkAdvice advice = advise(files, result);
  if (advice.files_per_second == 0) {
    return failed(kExitProblem, one_line(path + ": no files below 16 MiB could be read"));
  }
  const auto rate = [&](double samples) {
    return fmt::format("{:.0f} a second, {}/s", samples,
                       format_bytes(samples * static_cast<double>(advice.mean_bytes)));
  };
  fmt::print("files of {} one by one: {}\n", format_bytes(static_cast<double>(advice.mean_bytes)),
             rate(advice.files_per_second));
  if (advice.bandwidth > 0) {
    fmt::print("large requests: {}/s\n", format_bytes(advice.bandwidth));
  } else {
    fmt::print("there is no file of 16 MiB and more: what large requests bring is not known\n");
  }
  if (advice.samples == 0) {
    fmt::print("chunks would bring nothing here\n");
  } else {
    fmt::print(
        "in chunks of {} ({}): {}; `sluice chunks make --samples {}`\n", advice.samples,
        format_bytes(static_cast<double>(advice.samples) * static_cast<double>(advice.mean_bytes)),
        rate(advice.samples_per_second), advice.samples);
  }
  return fflush(stdout) == 0 && result.problem.empty() ? 0 : kExitProblem;
}

int remove_chunks(const std::string& given) {
  UniqueFd folder;
  std::string path;
  if (const int status = open_chunks(given, false, &folder, &path)) return status;
  const uint64_t removed = remove_from(folder.get(), 0);
  const bool gone = rmdir(path.c_str()) == 0;
  fmt::print("{} chunks removed\n", removed);
  return fflush(stdout) == 0 && gone ? 0 : kExitProblem;
}

}  // namespace sluice::cli
