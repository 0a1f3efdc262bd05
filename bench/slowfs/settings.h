// What slowfs was asked to be. Read once from the command line, constant afterwards.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::slowfs {

struct Settings {
  std::string source;      // absolute
  std::string mountpoint;  // absolute
  double meta_latency_ms = 0;
  double read_latency_ms = 0;
  double bandwidth_mb = 0;        // 10^6 bytes per second, all readers together; 0 is no limit
  uint32_t parallel = 0;          // requests answered at once; 0 is no limit
  double requests = 0;            // a second (service.h); 0 is no limit
  uint32_t read_ahead_kib = 128;  // what the kernel reads ahead
  uint32_t threads = 256;         // most worker threads
  uint32_t max_background = 0;    // kernel's limit of read-ahead requests in flight; 0 is threads
  double attr_timeout_s = 1;      // seconds
  double entry_timeout_s = 1;     // seconds; names that do not exist are remembered as long
  bool keep_cache = true;         // page cache survives open()
  bool cache_folders = false;     // the kernel caches listings, and opens folders by itself
  bool flush = false;             // closing a file is a request, which takes no time of its own
  uint64_t hang_after = UINT64_MAX;  // bytes
  uint64_t fail_after = UINT64_MAX;  // bytes
  std::string stats;                 // absolute, or empty
  bool foreground = false;
  bool allow_other = false;
  bool realtime = true;  // where it is allowed
};

// Reads the command line. Returns true if the program is to go on; otherwise *status is the exit
// status, and help or one line about the mistake has been printed.
bool parse_settings(int argc, char** argv, Settings* settings, int* status);

}  // namespace sluice::slowfs
