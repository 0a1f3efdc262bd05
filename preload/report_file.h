// The file that SLUICE_REPORT names, written piece by piece without malloc.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::preload {

// One JSON object of numbers and arrays of numbers. Not thread-safe; errors are kept until the end.
class ReportFile {
 public:
  // Creates or empties the file; error() says whether that went well.
  explicit ReportFile(const char* path);
  ReportFile(const ReportFile&) = delete;
  ReportFile& operator=(const ReportFile&) = delete;
  ~ReportFile();

  void begin(const char* name);  // an object within
  void end();
  void number(const char* name, uint64_t value);
  void list(const char* name);  // of numbers: item() each
  void item(uint64_t value);
  void end_list();

  // Writes what is left. 0 if everything went well so far, or the first error: an errno.
  int finish();

 private:
  void add(const char* text);
  void add(uint64_t value);
  void name(const char* name);
  void flush();

  long fd_;
  int error_ = 0;
  unsigned depth_ = 1;
  bool first_ = true;  // of its object or list
  size_t used_ = 0;
  char buffer_[4096];
};

// Which epochs (or passes) of that session came from memory: 95 % of their samples, or bytes.
struct EpochsInMemory {
  uint64_t epochs = 0;  // all
  uint64_t in_memory = 0;
  uint64_t first = 0, last = 0;  // of those, from 0
};
EpochsInMemory epochs_in_memory();

// How the process's latest session went: "history" and "epochs" (docs/report.md).
void write_history(ReportFile& file);

}  // namespace sluice::preload
