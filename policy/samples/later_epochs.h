// What is known of a job's epochs behind the running one: those that were published and wait for
// its end, and what only may come. Pure; one thread. Four bytes per position.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace sluice::policy {

class LaterEpochs {
 public:
  using Indices = std::vector<uint32_t>;

  // As SampleOrder::publish(), of a later epoch than the running one. Of more than kMost the last
  // ones are dropped. False, and no effect: it would leave a gap.
  bool publish(uint32_t epoch, uint64_t first, std::span<const uint32_t> indices);
  // The next epoch may read these samples, if it comes; none: nothing is expected any more. No
  // effect if one was published.
  void expect(std::span<const uint32_t> indices);

  // Of what was published.
  bool empty() const { return published_.empty(); }
  // REQUIRES of these: !empty().
  const Indices& first() const { return published_.begin()->second; }
  std::pair<uint32_t, Indices> take_first();  // with its number; it is the running one from now on

  // Of the epoch with that number, the next one: as published, as far as it was, or as expected.
  std::span<const uint32_t> following(uint32_t epoch) const;
  bool is_expected() const { return !expected_.empty(); }  // following() was not published
  // Another epoch runs, or was published.
  void begin() { Indices().swap(expected_); }

  uint64_t positions() const;  // of all

  static constexpr size_t kMost = 2;

 private:
  std::map<uint32_t, Indices> published_;
  Indices expected_;
};

}  // namespace sluice::policy
