// The properties of a path's mount. Everything that touches the path happens in a child process, so
// that a mount that hangs does not block this process.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/doctor.h"
#include "cli/files.h"
#include "cli/page_cache.h"
#include "cli/text.h"
#include "protocol/unique_fd.h"

namespace sluice::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPathDeadline{10};
constexpr uint64_t kProbeBytes = 1 << 20;
constexpr int kReopens = 3;  // some mounts drop their cache at every second open
constexpr size_t kMaxEntries = 4096;

struct Mount {
  uint64_t id = 0;
  std::string device;  // "MAJOR:MINOR"
  std::string root;    // the folder of the file system that is mounted
  std::string point;   // the mount point
  std::string type;    // "ext4", "nfs4", "fuse.sshfs"
  std::string source;
  std::string options;  // of the file system
};

// Decodes spaces and the like, which are written as three octal digits.
std::string unescaped(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    const bool escape = text[at] == '\\' && at + 3 < text.size();
    if (!escape) {
      out += text[at];
      continue;
    }
    out += static_cast<char>(strtoul(text.substr(at + 1, 3).c_str(), nullptr, 8));
    at += 3;
  }
  return out;
}

bool holds(const std::string& point, const std::string& path) {
  if (point == "/") return true;
  return path.compare(0, point.size(), point) == 0 &&
         (path.size() == point.size() || path[point.size()] == '/');
}

// /proc/self/mountinfo.
std::vector<Mount> read_mounts() {
  std::vector<Mount> mounts;
  std::istringstream lines(read_text("/proc/self/mountinfo"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    Mount mount;
    std::string word;
    words >> mount.id >> word >> mount.device >> mount.root >> mount.point >> word;
    while (words >> word && word != "-") {
    }
    words >> mount.type >> mount.source >> mount.options;
    if (mount.type.empty()) continue;
    mount.root = unescaped(mount.root);
    mount.point = unescaped(mount.point);
    mount.source = unescaped(mount.source);
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

// The mount that contains the absolute `path`, by its mount id, else by the longest mount point;
// one with an empty type if there is none.
Mount mount_of(const std::string& path) {
  struct statx status {};
  const bool known = statx(AT_FDCWD, path.c_str(), 0, STATX_MNT_ID, &status) == 0 &&
                     (status.stx_mask & STATX_MNT_ID) != 0;
  Mount best;
  for (Mount& mount : read_mounts()) {
    if (known && mount.id == status.stx_mnt_id) return mount;
    // Of two mounts on one mount point the later one covers the earlier.
    if (holds(mount.point, path) && mount.point.size() >= best.point.size()) best = mount;
  }
  return best;
}

// Whether this type of file system has its data behind a network or another process, so that every
// open and read may take long.
bool is_remote(const std::string& type) {
  static constexpr const char* kRemote[] = {
      "nfs",    "nfs4", "cifs",     "smb3",  "smbfs",     "9p",       "ceph",  "lustre", "gpfs",
      "beegfs", "afs",  "orangefs", "pvfs2", "glusterfs", "virtiofs", "ocfs2", "gfs2",   "coda"};
  return type.compare(0, 4, "fuse") == 0 ||
         std::find(std::begin(kRemote), std::end(kRemote), type) != std::end(kRemote);
}

struct Survival {
  std::string file;
  std::string problem;  // why it could not be measured
  uint64_t read = 0;    // bytes
  uint64_t pages_read = 0;
  uint64_t pages_before = 0;
  uint64_t pages_after = 0;
};

// A regular, non-empty file at or below `path`, breadth first, or "".
std::string some_file(const std::string& path) {
  std::deque<std::string> folders;
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return "";
  if (S_ISREG(status.st_mode)) return status.st_size > 0 ? path : "";
  if (S_ISDIR(status.st_mode)) folders.push_back(path);
  size_t seen = 0;
  for (; !folders.empty() && seen < kMaxEntries; folders.pop_front()) {
    DIR* folder = opendir(folders.front().c_str());
    if (folder == nullptr) continue;
    std::string found;
    while (const dirent* entry = readdir(folder)) {
      if (++seen >= kMaxEntries || !found.empty()) break;
      if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
      const std::string name = folders.front() + "/" + entry->d_name;
      if (lstat(name.c_str(), &status) != 0) continue;
      if (S_ISDIR(status.st_mode)) folders.push_back(name);
      if (S_ISREG(status.st_mode) && status.st_size > 0) found = name;
    }
    closedir(folder);
    if (!found.empty()) return found;
  }
  return "";
}

Survival measure_survival(const std::string& path) {
  Survival result;
  result.file = some_file(path);
  if (result.file.empty()) {
    result.problem = "no file with anything in it was found there";
    return result;
  }
  const UniqueFd file(open(result.file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!file) {
    result.problem = fmt::format("{}: {}", one_line(result.file), strerror(errno));
    return result;
  }
  std::string block(kProbeBytes, '\0');
  ssize_t got = 0;
  do {
    got =
        pread(file.get(), block.data(), kProbeBytes - result.read, static_cast<off_t>(result.read));
    if (got > 0) result.read += static_cast<uint64_t>(got);
  } while (got > 0 && result.read < kProbeBytes);
  if (got < 0) result.problem = fmt::format("{}: {}", one_line(result.file), strerror(errno));
  if (result.read == 0) return result;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  result.pages_read = (result.read + page - 1) / page;
  if (!resident_pages(file.get(), result.read, &result.pages_before)) {
    result.problem = "the kernel does not report to this user what is cached";
    return result;
  }
  for (int turn = 0; turn < kReopens; ++turn) {
    const UniqueFd again(open(result.file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  }
  resident_pages(file.get(), result.read, &result.pages_after);
  return result;
}

std::string keep_cache_advice(const std::string& type) {
  if (type.compare(0, 4, "fuse") == 0) {
    return "Mount it with kernel_cache or auto_cache, if its program offers that.";
  }
  if (type == "9p") return "Mount it with cache=loose or cache=mmap.";
  if (type == "cifs" || type == "smb3") return "Mount it with cache=loose for read-only data.";
  if (type == "virtiofs") return "Start virtiofsd with --cache=auto or --cache=always.";
  return "See the mount options of " + type + " for one that retains the cache across opens.";
}

Finding cache_finding(const std::string& path, const std::string& type) {
  const Survival seen = measure_survival(path);
  Finding finding{"page_cache", Level::kGood, "", "", ""};
  if (!seen.problem.empty()) {
    finding.level = Level::kNote;
    finding.value = seen.problem;
    finding.meaning = "Whether the page cache survives an open could not be measured.";
    finding.mend = "Name a file there that this user may read.";
    return finding;
  }
  finding.value = fmt::format("of {} pages read {} were cached, {} after {} more opens",
                              seen.pages_read, seen.pages_before, seen.pages_after, kReopens);
  if (seen.pages_before * 2 < seen.pages_read) {
    finding.level = Level::kWarn;
    finding.meaning =
        "This mount bypasses the page cache: nothing can be pre-cached, and jobs "
        "run as without Sluice.";
    finding.mend = type.compare(0, 4, "fuse") == 0
                       ? "Mount it without direct_io, if its program offers that."
                       : "Look for direct or cache=none among its mount options.";
  } else if (seen.pages_after * 10 < seen.pages_before * 9) {
    finding.level = Level::kWarn;
    finding.meaning =
        "Every open drops what was cached. What is read ahead lasts only until the "
        "file is opened again, so pre-caching is off for this mount.";
    finding.mend = keep_cache_advice(type);
  } else {
    finding.meaning = "The cache survives an open: what is read ahead is there when the job asks.";
  }
  return finding;
}

Finding read_ahead(const std::string& path, const Mount& mount) {
  struct stat status {};
  std::vector<std::string> devices{mount.device};
  if (stat(path.c_str(), &status) == 0) {
    devices.insert(devices.begin(),
                   fmt::format("{}:{}", major(status.st_dev), minor(status.st_dev)));
  }
  Finding finding{"read_ahead", Level::kNote, "unknown",
                  "The kernel does not report this mount's read-ahead.", ""};
  for (const std::string& device : devices) {
    const std::string candidates[] = {"/sys/class/bdi/" + device + "/read_ahead_kb",
                                      "/sys/dev/block/" + device + "/queue/read_ahead_kb",
                                      "/sys/dev/block/" + device + "/../queue/read_ahead_kb"};
    for (const std::string& name : candidates) {
      const std::string kib = read_word(name);
      if (kib.empty()) continue;
      finding.level = Level::kGood;
      finding.value = kib + " KiB";
      finding.meaning =
          "What the kernel itself reads ahead of a sequential reader. Sluice reads further ahead "
          "with requests of its own; nothing needs to be changed.";
      return finding;
    }
  }
  return finding;
}

Findings look(const std::string& path) {
  Findings findings;
  char* resolved = realpath(path.c_str(), nullptr);
  if (resolved == nullptr) {
    findings.push_back({"path", Level::kBroken, strerror(errno), "The path cannot be reached.",
                        "Check its spelling and rights."});
    return findings;
  }
  const std::string absolute = resolved;
  free(resolved);
  const Mount mount = mount_of(absolute);
  const bool remote = is_remote(mount.type);
  const bool memory = mount.type == "tmpfs" || mount.type == "ramfs";
  findings.push_back(
      {"mount", Level::kGood,
       fmt::format("{} on {} ({})", mount.type, one_line(mount.point), remote ? "remote" : "local"),
       remote   ? "Behind a network or another process: every request has its latency, which is "
                  "what reading ahead hides."
       : memory ? "In memory already: there is nothing to read ahead."
                : "Local: reading ahead hides the disk's latency and keeps its queue filled.",
       ""});
  if (memory) return findings;
  findings.push_back(read_ahead(absolute, mount));
  findings.push_back(cache_finding(absolute, mount.type));
  return findings;
}

std::string packed(const Findings& findings) {
  nlohmann::json list = nlohmann::json::array();
  for (const Finding& finding : findings) {
    list.push_back({finding.name, static_cast<int>(finding.level), finding.value, finding.meaning,
                    finding.mend});
  }
  return list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool unpack(const std::string& text, Findings* findings) {
  const nlohmann::json list = nlohmann::json::parse(text, nullptr, false);
  if (!list.is_array()) return false;
  for (const auto& one : list) {
    findings->push_back({one[0], static_cast<Level>(one[1].get<int>()), one[2], one[3], one[4]});
  }
  return true;
}

// All that the child wrote before the deadline.
std::string read_until(int pipe, Clock::time_point deadline) {
  std::string text;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd ready{pipe, POLLIN, 0};
    char block[4096];
    if (left <= 0 || poll(&ready, 1, static_cast<int>(left)) <= 0) return "";
    const ssize_t got = read(pipe, block, sizeof block);
    if (got <= 0) return text;
    text.append(block, static_cast<size_t>(got));
  }
}

}  // namespace

void probe_path(const std::string& path, Findings* findings) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  const UniqueFd input(ends[0]);
  UniqueFd output(ends[1]);
  const pid_t child = fork();
  if (child == 0) {
    const std::string text = packed(look(path));
    const bool written =
        write(output.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(written ? 0 : 1);
  }
  output.reset();
  const std::string text =
      child > 0 ? read_until(input.get(), Clock::now() + kPathDeadline) : std::string();
  const bool answered = unpack(text, findings);
  if (!answered) {
    findings->push_back({"path", Level::kBroken,
                         fmt::format("no answer within {} seconds", kPathDeadline.count()),
                         "The mount hangs, or is slower than any job could use.",
                         "See whether its server is reachable (mount, ping, the kernel's log)."});
  }
  if (child <= 0) return;
  // In an uninterruptible wait the child outlives this program, and init reaps it.
  if (!answered) kill(child, SIGKILL);
  waitpid(child, nullptr, answered ? 0 : WNOHANG);
}

}  // namespace sluice::cli
