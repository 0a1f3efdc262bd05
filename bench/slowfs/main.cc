// Mounts, answers requests and unmounts.
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "bench/slowfs/filesystem.h"
#include "bench/slowfs/kernel_device.h"
#include "bench/slowfs/read_ahead.h"
#include "bench/slowfs/request.h"
#include "bench/slowfs/settings.h"

namespace sluice::slowfs {
namespace {

void report_error(const std::string& text) { std::fprintf(stderr, "slowfs: %s\n", text.c_str()); }

void log_line(fuse_log_level, const char* format, va_list arguments) {
  char text[512];
  std::vsnprintf(text, sizeof text, format, arguments);
  std::fprintf(stderr, "slowfs: %s", text);
}

// Replaces the stats file as a whole, so that a reader sees one version or the other.
bool write_figures(const Filesystem& fs) {
  const std::string& path = fs.settings.stats;
  if (path.empty()) return true;
  const std::string text = fs.figures();
  const std::string fresh = path + ".new";
  std::FILE* file = std::fopen(fresh.c_str(), "we");
  bool good = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr && std::fclose(file) != 0) good = false;
  if (!good || std::rename(fresh.c_str(), path.c_str()) != 0) {
    report_error(path + ": " + std::strerror(errno));
    return false;
  }
  return true;
}

// Answers signals until one ends it. Every thread has them blocked, so they arrive here only.
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    for (const int signal : {SIGHUP, SIGUSR1, SIGUSR2, SIGTERM, SIGINT, kEnd}) {
      sigaddset(&set_, signal);
    }
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    // libfuse's loop sleeps in sem_wait; only an interrupted one looks whether it is to end.
    struct sigaction wake {};
    wake.sa_handler = [](int) {};
    sigaction(SIGALRM, &wake, nullptr);
  }

  void start(Filesystem& fs, fuse_session* session) {
    thread_ = std::thread([this, &fs, session, loop = pthread_self()] {
      for (;;) {
        // After the wish to end the loop is woken until it has ended: a wake-up can come just
        // before it sleeps.
        const timespec often{0, 20'000'000};
        const int signal = fuse_session_exited(session) ? sigtimedwait(&set_, nullptr, &often)
                                                        : sigwaitinfo(&set_, nullptr);
        if (signal == SIGHUP) write_figures(fs);
        if (signal == SIGUSR1) fs.gate.hang();
        if (signal == SIGUSR2) fs.gate.release();
        if (signal == SIGTERM || signal == SIGINT) fuse_session_exit(session);
        if (ended_) return;
        if (fuse_session_exited(session)) {
          fs.gate.stop();
          pthread_kill(loop, SIGALRM);
        }
      }
    });
  }

  void finish() {
    ended_ = true;
    if (!thread_.joinable()) return;
    pthread_kill(thread_.native_handle(), kEnd);
    thread_.join();
  }

 private:
  static constexpr int kEnd = SIGWINCH;
  sigset_t set_{};
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

// Measures what a call costs besides its latency: from some that sleep a known time, and
// rather the quicker ones: what delays the others is not there at every call.
void measure_overhead(Filesystem& fs) {
  fs.measuring_tid = gettid();
  const std::string path = fs.settings.mountpoint + "/" + kStatsName;
  std::array<uint64_t, 48> seen{};
  for (uint64_t& cost : seen) {
    const uint64_t begin_ns = now_ns();
    const int fd = open(path.c_str(), O_PATH | O_CLOEXEC);  // one lookup and nothing else
    const uint64_t took_ns = now_ns() - begin_ns;
    if (fd < 0) break;
    close(fd);
    cost = took_ns > kMeasuredNs ? took_ns - kMeasuredNs : 0;
  }
  fs.measuring_tid = 0;
  std::nth_element(seen.begin(), seen.begin() + seen.size() / 3, seen.end());
  fs.pacer.set_transport(seen[seen.size() / 3]);
}

// Notifies the process that waits, if one does (the foreground process), that the mount works.
class Ready {
 public:
  explicit Ready(int fd) : fd_(fd) {}
  void notify(Filesystem& fs) {
    const Settings& settings = fs.settings;
    const std::string problem = set_read_ahead(settings.mountpoint, settings.read_ahead_kib);
    if (!problem.empty()) {
      report_error(problem);
      failed_ = true;
      kill(getpid(), SIGTERM);
      return;
    }
    measure_overhead(fs);
    if (fd_ < 0) return;
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int standard = 0; standard < 3 && null >= 0; ++standard) dup2(null, standard);
    if (null > 2) close(null);
    const char good = 1;
    static_cast<void>(write(fd_, &good, 1) == 1);
    close(fd_);
  }
  bool failed() const { return failed_; }

 private:
  const int fd_;
  std::atomic<bool> failed_{false};
};

int answer_requests(const Settings& settings, int root, int ready_fd) {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  // Threads inherit it: sleeps end when they are due and not up to 50 us later.
  prctl(PR_SET_TIMERSLACK, 1);
  // Storage is another machine: jobs that load this one must not slow it down. An ordinary
  // user cannot ask for that, and need not.
  if (settings.realtime) {
    const sched_param lowest{sched_get_priority_min(SCHED_RR)};
    sched_setscheduler(0, SCHED_RR, &lowest);
  }
  Signals signals;
  Filesystem fs(settings, root);
  if (!write_figures(fs)) return 1;
  Ready ready(ready_fd);
  fuse_set_log_func(log_line);

  std::string options = "fsname=slowfs,subtype=slowfs,ro,default_permissions";
  if (settings.allow_other) options += ",allow_other";
  const char* words[] = {"slowfs", "-o", options.c_str()};
  fuse_args arguments = FUSE_ARGS_INIT(3, const_cast<char**>(words));
  fuse_session* session =
      fuse_session_new(&arguments, &operations(), sizeof(fuse_lowlevel_ops), &fs);
  fuse_opt_free_args(&arguments);
  if (session == nullptr) return 1;
  fs.session = session;
  if (fuse_session_mount(session, settings.mountpoint.c_str()) != 0) {
    fuse_session_destroy(session);
    return 1;
  }
  fuse_custom_io io{};
  io.writev = write_device;
  io.read = read_device;
  io.splice_send = splice_to_device;
  int status = 1;
  std::thread notifier;
  if (const int error = fuse_session_custom_io(session, &io, fuse_session_fd(session));
      error != 0) {
    report_error(std::string("cannot take over the session: ") + std::strerror(-error));
  } else {
    fs.gate.watch(fuse_session_fd(session));
    fs.on_mounted = [&] { notifier = std::thread([&] { ready.notify(fs); }); };
    signals.start(fs, session);
    fuse_loop_config* loop = fuse_loop_cfg_create();
    fuse_loop_cfg_set_max_threads(loop, settings.threads);
    fuse_loop_cfg_set_idle_threads(loop, settings.threads);
    status = fuse_session_loop_mt(session, loop) == 0 ? 0 : 1;
    fuse_loop_cfg_destroy(loop);
    signals.finish();
  }
  fuse_session_unmount(session);
  // Only now: it may wait for an answer that never comes.
  if (notifier.joinable()) notifier.join();
  fuse_session_destroy(session);
  write_figures(fs);
  return ready.failed() ? 1 : status;
}

int run(const Settings& settings) {
  // What was inherited, a pipe that a process waits on for example, is not to be held for hours.
  if (!settings.foreground) close_range(3, ~0U, 0);
  // Before anything is mounted: MOUNTPOINT may be SOURCE itself.
  const int root = open(settings.source.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) {
    report_error(settings.source + ": " + std::strerror(errno));
    return 1;
  }
  if (settings.foreground) return answer_requests(settings, root, -1);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return 1;
  const pid_t child = fork();
  if (child < 0) {
    report_error(std::string("fork: ") + std::strerror(errno));
    return 1;
  }
  if (child == 0) {
    close(ends[0]);
    setsid();
    if (chdir("/") != 0) return 1;
    return answer_requests(settings, root, ends[1]);
  }
  close(ends[1]);
  char good = 0;
  ssize_t got = 0;
  while ((got = read(ends[0], &good, 1)) < 0 && errno == EINTR) {
  }
  // The child has said on our standard error what was wrong.
  return got == 1 ? 0 : 1;
}

}  // namespace
}  // namespace sluice::slowfs

int main(int argc, char** argv) {
  sluice::slowfs::Settings settings;
  int status = 0;
  if (!sluice::slowfs::parse_settings(argc, argv, &settings, &status)) return status;
  return sluice::slowfs::run(settings);
}
