// The file that SLUICE_REPORT names, written piece by piece without malloc.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::preload {

// One JSON object of numbers and arrays of numbers. Not thread-safe; finish() returns errors.
class ReportFile {
 public:
  // `replaces`: writes to a temporary file in the same folder, which finish() renames to `path` if
  // there was no error. Otherwise, or if the folder is not writable, creates or truncates `path`
  // itself.
  ReportFile(const char* path, bool replaces);
  ReportFile(const ReportFile&) = delete;
  ReportFile& operator=(const ReportFile&) = delete;
  ~ReportFile();

  void begin(const char* name);  // a nested object
  void end();
  void number(const char* name, uint64_t value);
  void list(const char* name);  // of numbers: item() each
  void item(uint64_t value);
  void end_list();
  // Copies members literally from another report.
  void members(const char* text, size_t length);

  // Writes the rest of the buffer. Returns 0, or the errno of the first error.
  int finish();

 private:
  void add(const char* text);
  void add(uint64_t value);
  void name(const char* name);
  void flush();
  void put(const char* text, size_t length);

  const char* const path_;
  const char* beside_ = nullptr;  // the temporary file; nullptr: writes `path` itself
  long fd_ = -1;
  int error_ = 0;
  unsigned depth_ = 1;
  bool first_ = true;  // the next member or item is the first of its object or list
  size_t used_ = 0;
  char buffer_[4096];
};

// Which epochs (or passes) of the latest session were hits: 95 % of their samples, or bytes.
struct EpochsInMemory {
  uint64_t epochs = 0;  // all
  uint64_t in_memory = 0;
  uint64_t first = 0, last = 0;  // of those, from 0
};
EpochsInMemory epochs_in_memory();

// The duration of the process's latest session, as far as its history covers it.
uint64_t history_ns();
// Writes that session's "history", "epochs" and, of a job that substitutes samples,
// "substitutions" (docs/report.md).
void write_history(ReportFile& file);

}  // namespace sluice::preload
