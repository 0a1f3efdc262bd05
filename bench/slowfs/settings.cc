#include "bench/slowfs/settings.h"

#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "protocol/program_version.h"

namespace sluice::slowfs {
namespace {

struct Profile {
  const char* name;
  double latency_ms;
  double bandwidth_mb;
};
constexpr Profile kProfiles[] = {{"pfs", 0.5, 400}, {"far", 3, 400}, {"busy", 10, 100}};

constexpr const char* kFooter = R"(
Profiles (latency of every metadata call and every read, shared link); options override them:
  pfs    0.5 ms, 400 MB/s   a parallel file system close by
  far    3 ms,   400 MB/s   the same, far away
  busy   10 ms,  100 MB/s   one that many others use

Every lookup, getattr, open, opendir, readdir, readlink, statfs and access waits the metadata
latency; every read waits the read latency and then its turn on the one link. Close costs nothing.

Signals: SIGHUP writes the stats file, SIGUSR1 hangs every read, SIGUSR2 releases them (and
ends --hang-after), SIGTERM and SIGINT unmount. MOUNTPOINT/.slowfs-stats, which no listing
shows, reads as the current figures at no delay, while reads hang too. Opening
MOUNTPOINT/.slowfs-drop, hidden likewise, drops what the kernel caches of this mount.)";

bool report_error(const std::string& text) {
  std::cerr << "slowfs: " << text << '\n';
  return false;
}

// A number from 0 to `most`. CLI::Range lets "nan" through, and its message is long.
CLI::Validator within(double most) {
  const auto check = [most](const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    const bool good = end != text.c_str() && *end == '\0' && value >= 0 && value <= most;
    return good ? std::string()
                : text + " is not a number from 0 to " + CLI::detail::to_string(most);
  };
  return CLI::Validator(check, "NUMBER");
}

// A number of bytes. Without this "-1" would be a very large one.
CLI::Validator bytes() {
  const auto check = [](const std::string& text) {
    const bool good = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    return good ? std::string() : text + " is not a number of bytes";
  };
  return CLI::Validator(check, "BYTES");
}

// Checks both folders and makes them absolute.
bool check_folders(Settings* settings) {
  namespace fs = std::filesystem;
  for (std::string* folder : {&settings->source, &settings->mountpoint}) {
    struct stat info {};
    if (stat(folder->c_str(), &info) != 0) {
      const int error = errno;
      return report_error(*folder + ": " + std::strerror(error) +
                          (error == ENOTCONN ? " (a dead mount: fusermount3 -u removes it)" : ""));
    }
    if (!S_ISDIR(info.st_mode)) return report_error(*folder + ": not a folder");
    std::error_code error;
    const fs::path real = fs::canonical(*folder, error);
    if (error) return report_error(*folder + ": " + error.message());
    *folder = real.string();
  }
  const std::string prefix = settings->source == "/" ? "/" : settings->source + "/";
  if (settings->mountpoint.starts_with(prefix)) {
    return report_error(settings->mountpoint +
                        ": lies inside SOURCE, which would then contain itself");
  }
  if (!settings->stats.empty()) settings->stats = fs::absolute(settings->stats).string();
  return true;
}

}  // namespace

bool parse_settings(int argc, char** argv, Settings* settings, int* status) {
  CLI::App app{"A read-only view of SOURCE at MOUNTPOINT of a given slowness.", "slowfs"};
  app.footer(kFooter + 1);
  app.set_version_flag("--version", std::string("slowfs ") + protocol::kProgramVersion);
  Settings& s = *settings;
  double latency = -1;
  std::string profile;
  app.add_option("SOURCE", s.source, "folder to show")->required();
  app.add_option("MOUNTPOINT", s.mountpoint, "where")->required();
  auto* profile_option = app.add_option("--profile", profile, "pfs, far or busy (below)")
                             ->check(CLI::IsMember({"pfs", "far", "busy"}));
  auto* latency_option =
      app.add_option("--latency", latency, "both latencies, in milliseconds")->check(within(3.6e6));
  auto* meta_option = app.add_option("--meta-latency", s.meta_latency_ms,
                                     "milliseconds that each metadata call takes")
                          ->check(within(3.6e6));
  auto* read_option =
      app.add_option("--read-latency", s.read_latency_ms, "milliseconds that each read takes")
          ->check(within(3.6e6));
  auto* bandwidth_option =
      app.add_option("--bandwidth", s.bandwidth_mb,
                     "MB/s (10^6 bytes) of the one link that all readers share; 0 is no limit")
          ->check(within(1e6));
  app.add_option("--parallel", s.parallel, "requests answered at once, in turn; 0 is no limit")
      ->check(CLI::Range(0, 1 << 20));
  app.add_option(
         "--requests", s.requests,
         "requests answered in a second, as object stores count them: a file's lookup, open "
         "and first read are one; 0 is no limit")
      ->check(within(1e6));
  app.add_option("--read-ahead", s.read_ahead_kib,
                 "KiB that the kernel reads ahead; more than 128 needs root")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("--threads", s.threads, "most worker threads")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  app.add_option("--max-background", s.max_background,
                 "read-ahead requests that the kernel keeps in flight (default: as --threads)")
      ->check(CLI::Range(1, 65535));
  app.add_option("--attr-timeout", s.attr_timeout_s, "seconds that attributes are cached")
      ->capture_default_str()
      ->check(within(1e9));
  app.add_option("--entry-timeout", s.entry_timeout_s, "seconds that names are cached")
      ->capture_default_str()
      ->check(within(1e9));
  app.add_flag("!--no-keep-cache", s.keep_cache, "drop a file's page cache when it is opened");
  app.add_flag("--cache-folders", s.cache_folders,
               "listings are cached and folders opened without a request, as by NFS");
  app.add_flag("--flush", s.flush, "each close of a file waits for an answer");
  app.add_option("--hang-after", s.hang_after, "reads hang once so many bytes have been read")
      ->check(bytes());
  app.add_option("--fail-after", s.fail_after, "reads fail (EIO) once so many bytes were read")
      ->check(bytes());
  app.add_option("--stats", s.stats,
                 "file that gets the figures as JSON, on SIGHUP and at the end");
  app.add_flag("--foreground", s.foreground, "do not go to the background once mounted");
  app.add_flag("--allow-other", s.allow_other, "let other users in (as root: always)");
  app.add_flag("!--no-realtime", s.realtime,
               "compete with the readers for the processor (root's slowfs has priority)");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& call) {
    *status = app.exit(call);
    return false;
  } catch (const CLI::ParseError& error) {
    report_error(error.what());
    *status = 2;
    return false;
  }
  for (const Profile& known : kProfiles) {
    if (!*profile_option || profile != known.name) continue;
    if (!*latency_option) latency = known.latency_ms;
    if (!*bandwidth_option) s.bandwidth_mb = known.bandwidth_mb;
  }
  if (latency >= 0) {
    if (!*meta_option) s.meta_latency_ms = latency;
    if (!*read_option) s.read_latency_ms = latency;
  }
  if (s.max_background == 0) s.max_background = s.threads;
  if (geteuid() == 0) s.allow_other = true;
  if (!check_folders(settings)) {
    *status = 2;
    return false;
  }
  return true;
}

}  // namespace sluice::slowfs
