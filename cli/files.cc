#include "cli/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sluice::cli {

std::string read_text(const std::string& path) {
  std::string text;
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  char block[8192];
  for (ssize_t got = 0; file && (got = read(file.get(), block, sizeof block)) > 0;) {
    text.append(block, static_cast<size_t>(got));
  }
  return text;
}

std::string read_word(const std::string& path) {
  const std::string text = read_text(path);
  const size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_first_of(" \t\n", begin) - begin);
}

UniqueFd open_regular(const std::string& path, off_t* size, std::string* problem) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about {};
  if (!fd || fstat(fd.get(), &about) != 0) {
    *problem = strerror(errno);
    return {};
  }
  if (!S_ISREG(about.st_mode)) {
    *problem = "not a regular file";
    return {};
  }
  *size = about.st_size;
  return fd;
}

ssize_t read_fully(int fd, void* to, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got = read(fd, static_cast<char*>(to) + done, bytes - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return static_cast<ssize_t>(done);
}

bool write_fully(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = write(fd, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return false;
    text.remove_prefix(static_cast<size_t>(wrote));
  }
  return true;
}

std::string replace_file(const std::string& path, std::string_view text) {
  struct stat about {};
  if (lstat(path.c_str(), &about) == 0 && !S_ISREG(about.st_mode)) {
    return S_ISDIR(about.st_mode) ? "a folder" : "not a regular file";
  }
  std::string beside = path + ".XXXXXX";
  const UniqueFd fd(mkostemp(beside.data(), O_CLOEXEC));
  if (!fd) return strerror(errno);
  const mode_t hidden = umask(0);
  umask(hidden);
  std::string problem;
  if (!write_fully(fd.get(), text) || fchmod(fd.get(), 0666 & ~hidden) != 0 ||
      rename(beside.c_str(), path.c_str()) != 0) {
    problem = strerror(errno);
  }
  if (!problem.empty()) unlink(beside.c_str());
  return problem;
}

}  // namespace sluice::cli
