#include "optimizer/chunks/log_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "optimizer/packs/checksum.h"

namespace sluice::optimizer {

using policy::LogRange;

static_assert(AlignedBuffer::kBlock == policy::LogIndex::kBlock);

// 0, or an errno.
int LogFiles::make(const std::string& path, File* file) {
  file->fd.reset(::open(path.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file->fd && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT)) {
    // A file system without such files, if the folder is there.
    std::string name = path + "/sluice-log-XXXXXX";
    file->fd.reset(mkostemp(name.data(), O_CLOEXEC));
    if (file->fd && unlink(name.c_str()) != 0) file->fd.reset();
  }
  if (!file->fd) return errno;
  const std::string own = "/proc/self/fd/" + std::to_string(file->fd.get());
  file->direct.reset(::open(own.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  return 0;
}

std::unique_ptr<LogFiles> LogFiles::open(const std::string& path, std::string* reason) {
  std::unique_ptr<LogFiles> logs(new LogFiles(path));
  logs->direct_ = true;
  for (auto& log : logs->files_) {
    int error = 0;
    log = logs->make_files(&error);
    if (log == nullptr) {
      *reason = path + ": " + strerror(error);
      return nullptr;
    }
    for (const File& file : *log) logs->direct_ &= static_cast<bool>(file.direct);
  }
  return logs;
}

std::shared_ptr<const LogFiles::Files> LogFiles::make_files(int* error) const {
  auto files = std::make_shared<Files>();
  for (File& file : *files) {
    *error = make(path_, &file);
    if (*error != 0) return nullptr;
  }
  return files;
}

std::shared_ptr<const LogFiles::Files> LogFiles::files(uint32_t log) const {
  const std::lock_guard lock(mutex_);
  return files_[log];
}

const LogFiles::File& LogFiles::part(const Files& files, LogRange range, LogRange* part) {
  const uint64_t stripe = range.offset / kStripe, within = range.offset % kStripe;
  *part = {stripe / kStripes * kStripe + within, std::min(range.length, kStripe - within)};
  return files[stripe % kStripes];
}

int LogFiles::write(uint32_t log, uint64_t offset, std::span<const std::byte> bytes) {
  const std::shared_ptr<const Files> to = files(log);
  if (to == nullptr) return EIO;
  int error = write_once(*to, offset, bytes);
  if (error == ENOSPC || error == EDQUOT) {  // what was cleared still has its room
    close_cleared();
    error = write_once(*to, offset, bytes);
  }
  return error;
}

int LogFiles::write_once(const Files& files, uint64_t offset, std::span<const std::byte> bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    LogRange here;
    const File& file = part(files, {offset + done, bytes.size() - done}, &here);
    const ssize_t wrote =
        pwrite(file.fd.get(), bytes.data() + done, here.length, static_cast<off_t>(here.offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return wrote < 0 ? errno : EIO;
    done += static_cast<size_t>(wrote);
  }
  return 0;
}

uint64_t LogFiles::checksum(std::span<const std::byte> bytes) {
  const uint64_t sum = Checksum::of(bytes.data(), bytes.size());
  return sum != 0 ? sum : 1;
}

AlignedBuffer LogFiles::read(uint32_t log, LogRange range, int* error, From from) const {
  *error = range.offset % AlignedBuffer::kBlock != 0 || range.length == 0 ? EINVAL : 0;
  const std::shared_ptr<const Files> of = files(log);
  if (of == nullptr) *error = EIO;
  AlignedBuffer buffer(*error == 0 ? range.length : 0);
  if (*error == 0 && buffer.size() == 0) *error = ENOMEM;
  size_t done = 0;
  while (*error == 0 && done < buffer.size()) {
    LogRange here;
    const File& file = part(*of, {range.offset + done, buffer.size() - done}, &here);
    const bool direct = from == From::kDisk && file.direct && done % AlignedBuffer::kBlock == 0;
    const ssize_t got = pread(direct ? file.direct.get() : file.fd.get(), buffer.data() + done,
                              here.length, static_cast<off_t>(here.offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) *error = errno;
    if (got == 0) {  // the file's end
      memset(buffer.data() + done, 0, here.length);
      done += here.length;
    }
    if (got > 0) done += static_cast<size_t>(got);
  }
  return *error == 0 ? std::move(buffer) : AlignedBuffer();
}

int LogFiles::release(uint32_t log, LogRange range) {
  const std::shared_ptr<const Files> of = files(log);
  if (of == nullptr) return EIO;
  for (LogRange here; range.length != 0; range.offset += here.length, range.length -= here.length) {
    const File& file = part(*of, range, &here);
    if (fallocate(file.fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(here.offset), static_cast<off_t>(here.length)) != 0) {
      return errno;
    }
  }
  return 0;
}

void LogFiles::clear(uint32_t log) {
  int error = 0;
  std::shared_ptr<const Files> empty = make_files(&error);
  if (empty == nullptr) {
    const std::shared_ptr<const Files> full = files(log);
    for (const File& file : *full) {
      if (ftruncate(file.fd.get(), 0) != 0) break;
    }
    return;
  }
  const std::lock_guard lock(mutex_);
  cleared_.push_back(std::exchange(files_[log], std::move(empty)));
}

void LogFiles::end() {
  {
    const std::lock_guard lock(mutex_);
    for (auto& log : files_) cleared_.push_back(std::exchange(log, nullptr));
  }
  close_cleared();
}

void LogFiles::close_cleared() {
  const std::lock_guard closing(closing_);
  std::vector<std::shared_ptr<const Files>> cleared;
  const std::lock_guard lock(mutex_);
  cleared.swap(cleared_);
}

uint64_t LogFiles::taken(uint32_t log) const {
  uint64_t taken = 0;
  const std::shared_ptr<const Files> of = files(log);
  if (of == nullptr) return 0;
  for (const File& file : *of) {
    struct stat about {};
    if (fstat(file.fd.get(), &about) == 0) taken += static_cast<uint64_t>(about.st_blocks) * 512;
  }
  return taken;
}

}  // namespace sluice::optimizer
