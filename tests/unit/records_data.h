// Records of one big file, and a job that reads them in an order of its own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "policy/planner/scheduler.h"
#include "policy/samples/sample_book.h"

namespace sluice::test {

using policy::DatasetId;
using policy::Extent;
using policy::FileId;
using policy::Range;
using policy::SampleBook;
using policy::Scheduler;
using policy::SessionId;
using policy::Source;
using protocol::SessionMetric;

inline constexpr uint64_t kMiB = 1 << 20;

struct World : policy::Residency {
  uint64_t cached(FileId file, Range range) override {
    return reports_cache ? cache[file].covered(range) : 0;
  }
  bool known(FileId /*file*/) const override { return reports_cache; }
  bool awaited(FileId /*file*/) const override { return opening; }
  bool exact(FileId /*file*/) const override { return reports_cache; }
  bool opening = true;
  bool reports_cache = true;
  std::map<FileId, policy::IntervalSet> cache;
};

// Records of one file on storage that answers at once, read in an order of their own by a session
// with a budget.
class Records : public ::testing::Test {
 protected:
  void make(uint64_t memory, uint64_t record, uint32_t count, const std::vector<uint32_t>& order) {
    world_.opening = false;
    scheduler_.accounts().set_budget(1 << 30);
    scheduler_.add_session(SessionId{1}, {}, true, memory);
    scheduler_.queue().set(9, 128 << 10, 32);
    size_ = record * count;
    scheduler_.add_file(FileId{1}, size_, 9);
    scheduler_.file_usable(FileId{1}, true);
    set_ = book_.use(SessionId{1}, "set", count);
    for (uint32_t i = 0; i < count; ++i)
      place(i, {i * record, static_cast<uint32_t>(record), FileId{1}});
    ASSERT_TRUE(book_.publish(SessionId{1}, set_, 0, 0, order));
  }
  void place(uint32_t index, const Extent& extent) {
    ASSERT_TRUE(book_.datasets().locate(SessionId{1}, set_, index, {extent}, Source::kDeclared));
  }
  // What is planned is read, until nothing more is.
  void pump() {
    for (;;) {
      now_ += 1'000'000;
      std::vector<policy::PlannedRead> reads;
      scheduler_.plan(now_, &reads);
      for (const policy::PlannedRead& read : reads) {
        reads_.push_back(read.range);
        world_.cache[FileId{1}].add(read.range);
        scheduler_.on_done(read.token, read.range.length(), 0, now_ + 500'000);
      }
      std::vector<policy::PlannedDrop> drops;
      scheduler_.drops(now_, &drops);
      for (const policy::PlannedDrop& drop : drops) {
        const uint64_t gone =
            mapped_.covered(drop.range) == 0 ? world_.cache[FileId{1}].remove(drop.range) : 0;
        dropped_ += gone;
        scheduler_.on_dropped(drop, world_.cache[FileId{1}].covered(drop.range), now_);
      }
      if (reads.empty()) return;
    }
  }
  void read(uint32_t index) {
    const auto parts = book_.begin(SessionId{1}, 5, set_, index);
    scheduler_.samples().on_sample_begin(SessionId{1}, parts);
    for (const Extent& part : parts) {
      const uint64_t begin = part.offset / 4096 * 4096;
      const uint64_t end = std::min((part.offset + part.length + 4095) / 4096 * 4096, size_);
      missed_ += world_.cache[FileId{1}].add({begin, end});
    }
    scheduler_.samples().on_sample_end(SessionId{1}, parts);
    for (const Extent& part : parts) book_.part(5, set_, index, part);
    book_.end(5, set_, index);
    scheduler_.retention().on_read(SessionId{1}, set_, index, book_.parts(set_, index), now_);
  }
  uint64_t metric(SessionMetric which) {
    return (*scheduler_.accounts().metrics(SessionId{1}))[static_cast<size_t>(which)];
  }
  uint64_t bytes_read() const {
    uint64_t sum = 0;
    for (const Range& range : reads_) sum += range.length();
    return sum;
  }

  World world_;
  SampleBook book_;
  Scheduler scheduler_{&world_, &book_};
  uint64_t size_ = 0;
  DatasetId set_{};
  uint64_t now_ = 1'000'000, dropped_ = 0;
  uint64_t missed_ = 0;         // bytes that a reader had to fetch itself
  policy::IntervalSet mapped_;  // what a process maps stays when it is dropped
  std::vector<Range> reads_;
};

// Every second one, there and back: none beside the one before it.
inline std::vector<uint32_t> scattered(uint32_t count) {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < count; ++i) order.push_back(i * 7919 % count);
  return order;
}

}  // namespace sluice::test
