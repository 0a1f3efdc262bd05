#include "preload/report/report_file.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "preload/base/sys.h"
#include "preload/session/client.h"
#include "protocol/history_io.h"

namespace sluice::preload {

namespace {

long open_new(const char* path, int flags) {
  return sys::call(SYS_openat, AT_FDCWD, sys::word(path), O_WRONLY | O_CREAT | O_CLOEXEC | flags,
                   0644);
}

}  // namespace

ReportFile::ReportFile(const char* path, bool replaces) : path_(path) {
  static constinit char beside[4096];  // one report at a time; the caller's stack may be small
  const int length = snprintf(beside, sizeof beside, "%s.%d.new", path, sys::pid());
  if (replaces && length > 0 && static_cast<size_t>(length) < sizeof beside) {
    fd_ = open_new(beside, O_EXCL);
    if (!sys::failed(fd_)) beside_ = beside;
  }
  if (beside_ == nullptr) fd_ = open_new(path, O_TRUNC);
  if (sys::failed(fd_)) error_ = static_cast<int>(-fd_);
  add("{");
}

ReportFile::~ReportFile() {
  if (!sys::failed(fd_)) sys::close(static_cast<int>(fd_));
}

void ReportFile::put(const char* text, size_t length) {
  for (size_t done = 0; done < length && error_ == 0;) {
    const long wrote =
        sys::call(SYS_write, fd_, sys::word(text + done), static_cast<long>(length - done));
    if (wrote == -EINTR) continue;
    if (wrote <= 0) {
      error_ = wrote < 0 ? static_cast<int>(-wrote) : EIO;
    } else {
      done += static_cast<size_t>(wrote);
    }
  }
}

void ReportFile::flush() {
  put(buffer_, used_);
  used_ = 0;
}

void ReportFile::members(const char* text, size_t length) {
  if (length == 0) return;
  add(first_ ? "\n" : ",\n");
  first_ = false;
  flush();
  put(text, length);
}

void ReportFile::add(const char* text) {
  const size_t length = strlen(text);  // far shorter than the buffer
  if (used_ + length > sizeof buffer_) flush();
  memcpy(buffer_ + used_, text, length);
  used_ += length;
}

void ReportFile::add(uint64_t value) {
  char digits[24];
  char* at = digits + sizeof digits;
  *--at = '\0';
  do {
    *--at = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  add(at);
}

void ReportFile::name(const char* name) {
  add(first_ ? "\n" : ",\n");
  first_ = false;
  for (unsigned i = 0; i < depth_; ++i) add("  ");
  add("\"");
  add(name);  // a constant of this library: nothing to escape
  add("\": ");
}

void ReportFile::begin(const char* object) {
  name(object);
  add("{");
  ++depth_;
  first_ = true;
}

void ReportFile::end() {
  --depth_;
  add("\n");
  for (unsigned i = 0; i < depth_; ++i) add("  ");
  add("}");
  first_ = false;
}

void ReportFile::number(const char* what, uint64_t value) {
  name(what);
  add(value);
}

void ReportFile::list(const char* what) {
  name(what);
  add("[");
  first_ = true;
}

void ReportFile::item(uint64_t value) {
  if (!first_) add(", ");
  first_ = false;
  add(value);
}

void ReportFile::end_list() {
  add("]");
  first_ = false;
}

int ReportFile::finish() {
  add("\n}\n");
  flush();
  if (beside_ == nullptr) return error_;
  if (error_ == 0) {
    const long renamed =
        sys::call(SYS_renameat, AT_FDCWD, sys::word(beside_), AT_FDCWD, sys::word(path_));
    error_ = static_cast<int>(-renamed);
  }
  if (error_ != 0) sys::call(SYS_unlinkat, AT_FDCWD, sys::word(beside_), 0);
  return error_;
}

namespace {

// A copy of the history in a new mapping, all zero if there is none; nullptr: out of memory.
class LatestHistory {
 public:
  // A process has several sessions only if its optimizer died; copies the last one that has a
  // point.
  LatestHistory()
      : memory_(sys::call(SYS_mmap, 0, sizeof(protocol::HistoryCopy), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (sys::failed(memory_)) return;
    protocol::HistoryCopy& history = *get();
    for (uint32_t at = kMaxConnections; at-- > 0;) {
      const protocol::Shared* shared = connections()[at].shared;
      if (shared == nullptr || !protocol::copy(shared->history, history)) history.points = 0;
      if (history.points != 0) break;
    }
    if (history.points == 0) {
      history.epochs = history.epochs_seen = history.pairs = history.pairs_seen = 0;
    }
  }
  LatestHistory(const LatestHistory&) = delete;
  LatestHistory& operator=(const LatestHistory&) = delete;
  ~LatestHistory() {
    if (!sys::failed(memory_)) sys::call(SYS_munmap, memory_, sizeof(protocol::HistoryCopy));
  }
  protocol::HistoryCopy* get() const {
    return sys::failed(memory_) ? nullptr : reinterpret_cast<protocol::HistoryCopy*>(memory_);
  }

 private:
  long memory_;
};

void write_pairs(ReportFile& file, const protocol::HistoryCopy& history) {
  file.begin("substitutions");
  file.number("seen", history.pairs_seen);
  file.number("parts", protocol::kPairParts);
  file.list("counts");
  for (const uint64_t count : history.pair_count) file.item(count);
  file.end_list();
  file.list("requested");
  for (uint64_t at = 0; at < history.pairs; ++at) file.item(history.pair[at] >> 32);
  file.end_list();
  file.list("trained");
  for (uint64_t at = 0; at < history.pairs; ++at) file.item(history.pair[at] & UINT32_MAX);
  file.end_list();
  file.end();
}

}  // namespace

EpochsInMemory epochs_in_memory() {
  using protocol::EpochField;
  EpochsInMemory found;
  const LatestHistory latest;
  const protocol::HistoryCopy* history = latest.get();
  if (history == nullptr) return found;
  found.epochs = history->epochs_seen;
  for (uint64_t at = 0; at < history->epochs; ++at) {
    const auto of = [&](EpochField field) {
      return static_cast<double>(history->epoch[at][static_cast<size_t>(field)]);
    };
    const double samples = of(EpochField::sample_hits) + of(EpochField::sample_late) +
                           of(EpochField::sample_misses) + of(EpochField::sample_unknown);
    const double all = samples > 0 ? samples : of(EpochField::read_bytes);
    const double there = of(samples > 0 ? EpochField::sample_hits : EpochField::memory_bytes);
    if (all <= 0 || there < 0.95 * all) continue;
    if (found.in_memory++ == 0) found.first = at;
    found.last = at;
  }
  return found;
}

uint64_t history_ns() {
  const LatestHistory latest;
  const protocol::HistoryCopy* history = latest.get();
  return history == nullptr ? 0 : history->points * history->interval_ns;
}

void write_history(ReportFile& file) {
  const LatestHistory latest;
  if (latest.get() == nullptr) return;
  const protocol::HistoryCopy& history = *latest.get();
  file.begin("history");
  file.number("interval_ns", history.interval_ns);
  for (uint32_t field = 0; field < protocol::kHistoryFieldCount; ++field) {
    file.list(protocol::kHistoryFields[field].name);
    for (uint64_t at = 0; at < history.points; ++at) file.item(history.point[at][field]);
    file.end_list();
  }
  file.end();
  file.begin("epochs");
  file.number("seen", history.epochs_seen);
  for (uint32_t field = 0; field < protocol::kEpochFieldCount; ++field) {
    file.list(protocol::kEpochFields[field].name);
    for (uint64_t at = 0; at < history.epochs; ++at) file.item(history.epoch[at][field]);
    file.end_list();
  }
  file.end();
  if (history.pairs_seen != 0) write_pairs(file, history);
}

}  // namespace sluice::preload
