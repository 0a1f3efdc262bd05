// A FUSE mount with one file, whose server can be stopped: what needs an answer then waits.
#pragma once

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/process/optimizer_client.h"

namespace sluice::test {

// A mount whose server can be stopped, and which is asked for a file's attributes each time.
class StoppedServer {
 public:
  StoppedServer() {
    std::filesystem::create_directory(source_);
    std::filesystem::create_directory(mount_);
    std::filesystem::copy_file(folder_.cold_file("file", kBytes), source_ + "/file");
    struct stat before {};
    (void)stat(folder_.path().c_str(), &before);
    const std::string program =
        std::filesystem::read_symlink("/proc/self/exe").parent_path() / "../../bench/slowfs";
    pid_ = fork();
    if (pid_ == 0) {
      execl(program.c_str(), "slowfs", "--foreground", "--attr-timeout", "0", source_.c_str(),
            mount_.c_str(), nullptr);
      _exit(127);
    }
    (void)eventually([&] {
      if (pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) != 0) pid_ = -1;
      struct stat about {};
      mounted_ = stat(mount_.c_str(), &about) == 0 && about.st_dev != before.st_dev;
      return mounted_ || pid_ < 0;
    });
  }
  ~StoppedServer() {
    signal(SIGCONT);
    signal(SIGTERM);
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
  }
  StoppedServer(const StoppedServer&) = delete;
  StoppedServer& operator=(const StoppedServer&) = delete;

  static constexpr uint64_t kBytes = 1 << 20;  // of the file

  bool mounted() const { return mounted_; }  // false: there is no FUSE here
  std::string file() const { return mount_ + "/file"; }
  void stop() const { signal(SIGSTOP); }
  void resume() const { signal(SIGCONT); }

 private:
  void signal(int number) const {
    if (pid_ > 0) kill(pid_, number);
  }

  const TempFolder folder_;
  const std::string source_ = folder_.path() + "/source", mount_ = folder_.path() + "/mount";
  pid_t pid_ = -1;
  bool mounted_ = false;
};

}  // namespace sluice::test
