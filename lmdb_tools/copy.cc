#include "lmdb_tools/copy.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

#include "lmdb/failure.h"
#include "lmdb_tools/progress.h"

namespace sluice::lmdb {
namespace {

// A transaction is held in memory twice, here and by liblmdb.
constexpr uint64_t kBatchBytes = 64U << 20;

// Reads records [first, first + count). Of several failures the one of the first record is thrown,
// so that the same input always gives the same message.
std::vector<KeyValue> read_chunk(const RecordSource& source, uint64_t first, uint64_t count,
                                 unsigned threads) {
  std::vector<KeyValue> chunk(count);
  std::vector<std::exception_ptr> failures(count);
  std::atomic<uint64_t> next{0};
  const auto work = [&] {
    for (uint64_t i = next++; i < count; i = next++) {
      try {
        chunk[i] = source.read(first + i);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (unsigned i = 1; i < threads && i < count; ++i) helpers.emplace_back(work);
    work();
  }
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return chunk;
}

// Divides the sequence of records into transactions. The division depends on the records alone, not
// on where a run began, so that an interrupted job's file equals any other's.
class Batcher {
 public:
  Batcher(uint64_t records, DatabaseWriter* writer) : records_(records), writer_(writer) {}

  void add(KeyValue record) {
    bytes_ += record.value.size();
    batch_.push_back(std::move(record));
    if (batch_.size() >= records_ || bytes_ >= kBatchBytes) flush();
  }

  void flush() {
    if (!batch_.empty()) writer_->commit(batch_);
    batch_.clear();
    bytes_ = 0;
  }

 private:
  const uint64_t records_;
  DatabaseWriter* const writer_;
  std::vector<KeyValue> batch_;
  uint64_t bytes_ = 0;
};

}  // namespace

void copy_records(const RecordSource& source, const CopyLimits& limits, const std::string& what,
                  DatabaseWriter* writer) {
  const bool by_bytes = limits.bytes != 0;
  const uint64_t goal = by_bytes              ? limits.bytes
                        : limits.records != 0 ? limits.records
                                              : source.count();
  const unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  uint64_t index = writer->records();
  uint64_t bytes = writer->bytes();
  const auto done = [&] { return by_bytes ? bytes : index; };
  if (index > 0) fmt::print(stderr, "{}: going on after {} records\n", what, index);
  Progress progress(what, goal, done(), bytes);
  Batcher batcher(limits.commit, writer);
  while (done() < goal) {
    const uint64_t count = std::min<uint64_t>(threads * 8, by_bytes ? UINT64_MAX : goal - index);
    check_key_range(index + count);
    for (KeyValue& record : read_chunk(source, index, count, threads)) {
      if (done() >= goal) break;
      bytes += record.value.size();
      ++index;
      batcher.add(std::move(record));
    }
    progress.update(done(), index, bytes);
  }
  batcher.flush();
}

}  // namespace sluice::lmdb
