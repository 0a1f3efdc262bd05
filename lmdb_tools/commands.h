// The subcommands of sluice-lmdb. Each prints to standard output, and throws a Failure for every
// problem. Their options are read in main.cc: of all files it alone includes CLI11, which takes
// longer to compile than all the rest of a command.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::lmdb {

// The options of a command do not go together.
struct Usage : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct MakeOptions {
  std::vector<std::string> idx;    // images, labels
  std::vector<std::string> paths;  // [SOURCE] OUT
  bool encoded = false;
  bool grey = false;
  std::string resize;
  std::string min_bytes;
  uint64_t count = 0;
  uint64_t commit = 1024;
};
void make(const MakeOptions& options);

void print_stat(const std::string& path);

struct LayoutOptions {
  std::string path;
  bool csv = false;
  uint64_t batch = 0;  // records
  uint64_t gpus = 1;   // per node
};
void layout(const LayoutOptions& options);

struct VerifyOptions {
  std::string path;
  bool datum = false;
};
void verify(const VerifyOptions& options);

struct RangesOptions {
  std::string path;
  uint64_t ranks = 0;
  std::string by = "bytes";
  bool json = false;
};
void ranges(const RangesOptions& options);

struct ReplicasOptions {
  std::string path, out;
  unsigned count = 0;
};
void replicas(const ReplicasOptions& options);

struct ReorderOptions {
  std::string in, out;
  uint64_t seed = 0;
};
void reorder(const ReorderOptions& options);

// A key on one line: bytes that are not printable ASCII, and backslashes, as \xNN.
std::string printable(std::string_view key);

// Fails if standard output did not accept everything that was printed.
void check_output();

}  // namespace sluice::lmdb
