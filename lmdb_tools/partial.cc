#include "lmdb_tools/partial.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "lmdb/failure.h"
#include "lmdb/file.h"

namespace sluice::lmdb {
namespace {

namespace fs = std::filesystem;

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

bool exists(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0;
}

void make_folder(const std::string& path) {
  if (mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) {
    fail("cannot make {}: {}", path, strerror(errno));
  }
}

void sync_folder(const std::string& path) {
  const UniqueFd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder) fsync(folder.get());
}

// renameat2 refuses an existing target atomically. Where the file system does not support the flag,
// rename itself replaces nothing but an empty folder.
bool rename_to_new(const std::string& from, const std::string& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno != EINVAL && errno != ENOSYS) return false;
  if (exists(to)) {
    errno = EEXIST;
    return false;
  }
  return rename(from.c_str(), to.c_str()) == 0;
}

}  // namespace

Partial::Partial(std::string out, const std::string& job)
    : out_(without_slashes(std::move(out))),
      folder_(out_ + ".partial"),
      result_(folder_ + "/result"),
      job_file_(folder_ + "/job") {
  if (exists(out_)) {
    // An earlier run may have ended between its rename and the removal of the rest.
    if (exists(job_file_) && !exists(result_)) discard();
    fail("{} exists and is not overwritten", out_);
  }
  begin(job);
  lock_and_compare(job);
  make_folder(result_);
}

// The job file is created atomically, so that a folder without one contains no result.
void Partial::begin(const std::string& job) {
  make_folder(folder_);
  if (exists(job_file_)) return;
  if (exists(result_)) fail("{} is not of this program's making; remove it", folder_);
  const std::string name = fmt::format("{}.{}", job_file_, getpid());
  const int file = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) fail("cannot write {}: {}", name, strerror(errno));
  const bool written = write(file, job.data(), job.size()) == static_cast<ssize_t>(job.size());
  const int why = written ? 0 : errno;
  close(file);
  // link, not rename: if two processes begin at once, exactly one succeeds.
  const bool linked = written && (link(name.c_str(), job_file_.c_str()) == 0 || errno == EEXIST ||
                                  rename(name.c_str(), job_file_.c_str()) == 0);
  const int error = written ? errno : (why != 0 ? why : ENOSPC);
  unlink(name.c_str());
  if (linked) return;
  rmdir(folder_.c_str());
  fail("cannot write {}: {}", job_file_, strerror(error));
}

void Partial::lock_and_compare(const std::string& job) {
  lock_.reset(open(job_file_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!lock_) fail("cannot open {}: {}", job_file_, strerror(errno));
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    fail("{} is being written by another process", folder_);
  }
  const auto bytes = read_file(job_file_);
  if (std::string(bytes.begin(), bytes.end()) != job) {
    fail("{} was begun with other input or options; repeat those, or remove it", folder_);
  }
}

void Partial::publish() {
  sync_folder(result_);
  if (!rename_to_new(result_, out_)) {
    fail("cannot rename {} to {}: {}", result_, out_, strerror(errno));
  }
  const std::string parent = fs::path(out_).parent_path();
  sync_folder(parent.empty() ? "." : parent);
  discard();
}

// The job file is removed after the result, so that the rest of an interrupted removal can still be
// recognised.
void Partial::discard() {
  std::error_code ignored;
  fs::remove_all(result_, ignored);
  fs::remove(job_file_, ignored);
  fs::remove(folder_, ignored);
}

}  // namespace sluice::lmdb
