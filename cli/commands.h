// The subcommands. Each prints to standard output, errors to standard error, and returns the exit
// status. `sluice simulate`: simulate.h.
#pragma once

#include <string>
#include <vector>

#include "cli/run_settings.h"

namespace sluice::cli {

struct RunArguments {
  std::vector<std::string> options;  // "--flag=value", or "--flag" and an empty value, or "--help"
  std::vector<std::string> command;  // empty if there is none
};

// The command begins after "--", or at the first word that is neither an option nor an option's
// value. So `sluice run --size 50M -- python3 train.py --size 3` and the same without "--" both
// leave "--size 3" to the command. A switch without a value is on ("--off" and "--off no" both
// work). What cannot be an option is left in `options`, where the parser rejects it.
RunArguments split_run_arguments(const std::vector<std::string>& arguments);

// `sluice run`: executes the command, with the preload library, in this process. Returns only if
// that fails.
int run(const Given& command_line, const std::vector<std::string>& command);

struct StatusOptions {
  std::string socket;       // empty: SLUICE_SOCKET, else the default path
  bool json = false;        // one line of JSON instead of tables
  bool watch = false;       // repeat every second, until interrupted or the optimizer has ended
  bool prometheus = false;  // print_metrics instead
  std::string out;          // its file
};
int print_status(const StatusOptions& options);

// `sluice status --prometheus`: the metrics of `socket`'s optimizer, or without one of all of this
// user's in the default folder, in the text format of Prometheus; on standard output, or in the
// file `out`, which is replaced as a whole. No optimizer is no problem: `sluice_optimizers` is then
// 0. kExitProblem if one does not answer, after the metrics of the others are written.
int print_metrics(const StatusOptions& options);
int stop(const std::string& socket);

// `sluice doctor`: examines this machine, and given paths, for what Sluice needs. Every feature is
// probed by trying it; nothing is changed.
struct DoctorOptions {
  std::vector<std::string> paths;
  bool json = false;
  bool verbose = false;  // what each finding means, and what to do about it; JSON always has it
};
// Prints a line for each finding, and a verdict. The exit status is 1 if something is broken.
int doctor(const DoctorOptions& options);

// `sluice report`: a run's end-of-run figures, or a benchmark's, as one page of HTML.
struct ReportOptions {
  std::string file;                 // the file of SLUICE_REPORT, or a bench.json
  std::string out = "report.html";  // replaced completely, or not at all
};
int report(const ReportOptions& options);

// `sluice warm`: reads files, and all those in folders, into the page cache. Interrupted, it ends
// at once, and what was read stays cached.
struct WarmOptions {
  std::vector<std::string> paths;
  unsigned depth = 32;  // files or pieces that are read at a time
  uint64_t memory = 0;  // bytes that may be cached of them; 0: what memory can hold
  bool check = false;   // read nothing: print how much is cached
};
// kExitProblem if something could not be read, or does not fit.
int warm(const WarmOptions& options);

// `sluice bench`: reads from a file, or files of a folder, for at most ten seconds, and prints how
// fast that is. What was not cached before is dropped again.
struct BenchOptions {
  std::string path;
  bool json = false;
};
// kExitProblem if nothing could be measured.
int bench(const BenchOptions& options);

// `sluice chunks make`: packs the files, and all those in folders, in a random order, equally many
// in each chunk, for SLUICE_POLICY=brand and pool (docs/packs.md). Chunks that are there already
// and are still right stay: interrupted, it goes on where it was.
struct MakeChunksOptions {
  std::vector<std::string> paths;
  std::string folder;     // the cache folder; "": SLUICE_CACHE_DIR
  uint32_t samples = 64;  // of a chunk
  uint64_t seed = 1;      // of the order
  unsigned depth = 16;    // chunks that are made at a time
};
// kExitProblem if a file could not be read or a chunk not be written: the others are made.
int make_chunks(const MakeChunksOptions& options);
// Measures reading files below `path`, and prints how many a chunk should have there.
int tune_chunks(const std::string& path);
// Removes the chunks that were made.
int remove_chunks(const std::string& folder);

// The chunks in a cache folder: those that `sluice chunks make` has made, and packs of what was
// fetched (docs/packs.md). Read-only without `remove`, so that it may run beside an optimizer:
// packs that are removed meanwhile are ignored.
struct ChunkFilesOptions {
  std::string folder;   // the cache folder; "": SLUICE_CACHE_DIR
  bool remove = false;  // verify: remove damaged ones
};
// kExitProblem if a chunk is damaged or cannot be read, kExitUsage without a folder.
int verify_chunks(const ChunkFilesOptions& options);
int print_chunks(const ChunkFilesOptions& options);

// `sluice docs`: prints configuration(), or with --man manual_page() (manual.h).
int print_document(const std::string& text);

}  // namespace sluice::cli
