#include "optimizer/io/start_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "optimizer/io/beside.h"
#include "optimizer/io/list_folder.h"
#include "optimizer/io/residency.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {
namespace {

using policy::PlaceList;
using policy::Range;

constexpr uint64_t kWhole = 256 << 10;      // files up to this size are fetched whole
constexpr uint64_t kLongestPart = 1 << 30;  // bytes

int64_t modified_ns(const struct stat& about) {
  return about.st_mtim.tv_sec * int64_t{1'000'000'000} + about.st_mtim.tv_nsec;
}

// The parts of [0, size) that may be cached.
std::vector<Range> cached_parts(int fd, uint64_t size, bool no_cachestat) {
  std::vector<Range> out;
  uint64_t from = 0;
  const auto add = [&](uint64_t end) {
    for (; from < end; from += std::min(kLongestPart, end - from)) {
      out.push_back({from, std::min(end, from + kLongestPart)});
    }
  };
  for (const Range& absent : uncached_parts(fd, size, no_cachestat)) {
    add(absent.begin);
    from = absent.end;
  }
  add(size);
  return out;
}

}  // namespace

void add_start_file(const std::string& path, bool no_cachestat, PlaceList* list) {
  struct stat about {};
  if (list->files.size() >= kStartFiles || stat(path.c_str(), &about) != 0 ||
      !S_ISREG(about.st_mode) || about.st_size <= 0 || major(about.st_dev) != 0) {
    return;
  }
  const auto size = static_cast<uint64_t>(about.st_size);
  std::vector<Range> parts{{0, size}};
  if (size > kWhole) {
    const UniqueFd fd = open_regular(path, &about);
    uint64_t cached = 0;
    // Of another user's file, as a shared environment's, the kernel does not report it: all of a
    // large library would be more than what is used of it.
    if (!fd || !cached_exactly(fd.get(), {0, size}, no_cachestat, &cached)) return;
    parts = cached_parts(fd.get(), size, no_cachestat);
  }
  if (parts.empty()) return;
  const auto number = static_cast<uint32_t>(list->files.size());
  list->files.push_back({path, size, modified_ns(about)});
  for (const Range& part : parts) {
    list->parts.push_back({part.begin, static_cast<uint32_t>(part.length()), number, number, 0});
  }
}

uint64_t fetch_start_file(const PlaceList::File& file, const std::vector<PlaceList::Part>& parts) {
  struct stat about {};
  const UniqueFd fd = open_regular(file.path, &about);
  if (!fd || static_cast<uint64_t>(about.st_size) != file.size ||
      modified_ns(about) != file.modified_ns) {
    return 0;
  }
  std::array<char, 128 << 10> scratch;
  uint64_t read = 0;
  for (const PlaceList::Part& part : parts) {
    posix_fadvise(fd.get(), static_cast<off_t>(part.offset), part.length, POSIX_FADV_WILLNEED);
    for (uint64_t done = 0; done < part.length;) {
      const uint64_t most = std::min<uint64_t>(scratch.size(), part.length - done);
      const ssize_t got =
          pread(fd.get(), scratch.data(), most, static_cast<off_t>(part.offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return read;
      done += static_cast<uint64_t>(got);
      read += static_cast<uint64_t>(got);
    }
  }
  return read;
}

namespace {

// FOLDER/__pycache__/NAME.cpython-311.pyc is of FOLDER/NAME.py (PEP 3147): FOLDER/NAME. Empty: no
// such.
std::string module_of(const std::string& path) {
  static constexpr std::string_view kCache = "/__pycache__/";
  const size_t cache = path.rfind(kCache);
  if (cache == std::string::npos || !path.ends_with(".pyc")) return {};
  const std::string name = path.substr(cache + kCache.size());
  return path.substr(0, cache + 1) + name.substr(0, name.find('.'));
}

}  // namespace

std::string source_of_module(const std::string& path) {
  const std::string module = module_of(path);
  return module.empty() ? module : module + ".py";
}

std::string extension_suffix(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  const size_t tag = name.find(".cpython-");
  return tag != std::string::npos && name.ends_with(".so") ? name.substr(tag) : std::string();
}

std::vector<std::string> tried_before_package(const std::string& path,
                                              const std::set<std::string>& suffixes) {
  const std::string module = module_of(path);
  std::vector<std::string> tried;
  if (!module.ends_with("/__init__")) return tried;
  for (const std::string& suffix : suffixes) tried.push_back(module + suffix);
  return tried;
}

void look_up_start_file(const std::string& path) {
  struct stat ignored {};
  stat(path.c_str(), &ignored);
}

void list_start_folder(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (fd) list_folder(fd.get(), "");
}

}  // namespace sluice::optimizer
