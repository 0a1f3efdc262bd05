// The file that SLUICE_REPORT names, written piece by piece without malloc.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::preload {

// One JSON object of numbers and arrays of numbers. Not thread-safe; errors are kept until the end.
class ReportFile {
 public:
  // `replaces`: the file is written beside `path` and takes its place in finish(), if all went well
  // (and in its place after all where the folder is not ours to write). Else it is created or
  // emptied.
  ReportFile(const char* path, bool replaces);
  ReportFile(const ReportFile&) = delete;
  ReportFile& operator=(const ReportFile&) = delete;
  ~ReportFile();

  void begin(const char* name);  // an object within
  void end();
  void number(const char* name, uint64_t value);
  void list(const char* name);  // of numbers: item() each
  void item(uint64_t value);
  void end_list();
  // Members as they are in another report.
  void members(const char* text, size_t length);

  // Writes what is left. 0 if everything went well so far, or the first error: an errno.
  int finish();

 private:
  void add(const char* text);
  void add(uint64_t value);
  void name(const char* name);
  void flush();
  void put(const char* text, size_t length);

  const char* const path_;
  const char* beside_ = nullptr;  // written in its stead at first; nullptr: `path` itself
  long fd_ = -1;
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

// How long the process's latest session went, as far as its history knows.
uint64_t history_ns();
// How that went: "history" and "epochs" (docs/report.md).
void write_history(ReportFile& file);

}  // namespace sluice::preload
