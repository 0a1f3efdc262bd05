#include "preload/report/report_merge.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "preload/base/settings.h"
#include "preload/base/sys.h"
#include "protocol/siphash.h"

namespace sluice::preload {
namespace {

constexpr uint64_t kMostWaitNs = 2'000'000'000;
constexpr long kPauseNs = 5'000'000;
constexpr off_t kLongest = 4 << 20;  // of a report; Sluice's have some hundred kilobytes at most

// Opens the folder of `path`. A descriptor or a negative errno.
long open_folder(const char* path) {
  static constinit char folder[4096];  // one report at a time; the caller's stack may be small
  const char* slash = strrchr(path, '/');
  const size_t length = slash == nullptr ? 0 : static_cast<size_t>(slash - path) + 1;
  if (length >= sizeof folder) return -ENAMETOOLONG;
  memcpy(folder, path, length);
  strcpy(folder + length, ".");
  return sys::call(SYS_openat, AT_FDCWD, sys::word(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void lock(long folder) {
  const uint64_t until = sys::now_ns() + kMostWaitNs;
  while (sys::call(SYS_flock, folder, LOCK_EX | LOCK_NB) == -EWOULDBLOCK && sys::now_ns() < until) {
    struct timespec pause = {0, kPauseNs};
    sys::call(SYS_nanosleep, sys::word(&pause), 0);
  }
}

}  // namespace

uint64_t job_number() {
  constexpr uint64_t kNoSecret[2] = {};
  const char* job = g_settings.job != nullptr ? g_settings.job : "";
  // 52 bits: JSON parsers may represent all numbers as doubles.
  const uint64_t number = protocol::siphash(kNoSecret, job, strlen(job)).low >> 12;
  return number != 0 ? number : 1;
}

EarlierReport::EarlierReport(const char* path) {
  struct stat about;
  const long found = sys::call(SYS_lstat, sys::word(path), sys::word(&about));
  replaceable_ = found == -ENOENT || (found == 0 && S_ISREG(about.st_mode));
  if (!replaceable_ || g_settings.job == nullptr) return;
  folder_ = open_folder(path);
  if (!sys::failed(folder_)) lock(folder_);
  read(path);
  if (size_ != 0 && number("job") != job_number()) forget();
}

EarlierReport::~EarlierReport() {
  forget();
  if (!sys::failed(folder_)) sys::close(static_cast<int>(folder_));  // also releases the lock
}

void EarlierReport::forget() {
  if (size_ != 0) sys::call(SYS_munmap, memory_, static_cast<long>(size_));
  size_ = 0;
}

void EarlierReport::read(const char* path) {
  const long file =
      sys::call(SYS_openat, AT_FDCWD, sys::word(path), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (sys::failed(file)) return;
  struct stat about;
  if (sys::call(SYS_fstat, file, sys::word(&about)) == 0 && S_ISREG(about.st_mode) &&
      about.st_size > 0 && about.st_size <= kLongest) {
    const auto size = static_cast<size_t>(about.st_size) + 1;
    memory_ = sys::call(SYS_mmap, 0, static_cast<long>(size), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!sys::failed(memory_)) {
      size_ = size;
      const long got = sys::call(SYS_pread64, file, memory_, about.st_size, 0);
      if (got != about.st_size) forget();
    }
  }
  sys::close(static_cast<int>(file));
}

uint64_t EarlierReport::number(const char* name) const {
  if (size_ == 0) return 0;
  char line[80];
  const int length = snprintf(line, sizeof line, "\n  \"%s\": ", name);
  if (length < 0 || static_cast<size_t>(length) >= sizeof line) return 0;
  const char* at = strstr(reinterpret_cast<const char*>(memory_), line);
  if (at == nullptr) return 0;
  uint64_t value = 0;
  for (at += length; *at >= '0' && *at <= '9'; ++at) {
    value = value * 10 + static_cast<uint64_t>(*at - '0');
  }
  return value;
}

const char* EarlierReport::history(size_t* length) const {
  *length = 0;
  if (size_ == 0) return "";
  const char* const text = reinterpret_cast<const char*>(memory_);
  const char* begin = strstr(text, "\n  \"history\": ");
  const char* end = strrchr(text, '}');  // of the outermost object
  if (begin == nullptr || end == nullptr || end <= begin) return "";
  ++begin;
  while (end > begin && end[-1] == '\n') --end;
  *length = static_cast<size_t>(end - begin);
  return begin;
}

}  // namespace sluice::preload
