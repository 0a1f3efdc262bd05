// What a request costs beside its bytes, and how deep small ones are queued.
#include "policy/storage/request_cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "policy/storage/storage_model.h"

namespace sluice::test {
namespace {

using policy::RequestCost;

constexpr uint64_t kMiB = 1 << 20;

// Slots of requests of these sizes, one size a slot.
void busy(RequestCost* cost, double request_ns, double byte_ns, std::vector<uint64_t> sizes) {
  for (int slot = 0; slot < 200; ++slot) {
    const uint64_t size = sizes[static_cast<size_t>(slot) % sizes.size()];
    const double each = request_ns + byte_ns * static_cast<double>(size);
    const auto count = std::max<uint64_t>(40, static_cast<uint64_t>(60e6 / each));
    cost->add(count, count * size, static_cast<uint64_t>(static_cast<double>(count) * each));
  }
}

TEST(RequestCost, FollowsFromRequestsOfTwoSizes) {
  for (const double request_ns : {20e3, 500e3, 8e6}) {
    for (const double byte_ns : {1.0, 8.0}) {
      RequestCost cost;
      busy(&cost, request_ns, byte_ns, {128 << 10, 32 << 10});
      EXPECT_NEAR(cost.request_ns(), request_ns, request_ns / 6);
      const auto worth = static_cast<double>(cost.worth());
      EXPECT_NEAR(worth, std::min(request_ns / byte_ns, 4.0 * kMiB), worth / 2) << request_ns;
    }
  }
}

TEST(RequestCost, OfALinkThatOnlyBytesFillIsSmall) {
  RequestCost cost;
  busy(&cost, 0, 8, {128 << 10, 32 << 10});
  EXPECT_LT(cost.worth(), 4096U);
}

TEST(RequestCost, IsWorthATrialWhereAllAreOfOneSize) {
  RequestCost cost;
  EXPECT_EQ(cost.worth(), 0U);
  busy(&cost, 500e3, 8, {4096});
  EXPECT_GE(cost.worth(), 2 * 4096U) << "larger ones show the rest";
  EXPECT_NEAR(cost.request_ns(), 500e3, 150e3);
}

// Reads of 64 KiB over a link that they filled were taken for a sign that requests are dear.
TEST(RequestCost, IsNotTriedWhereAllAreLarge) {
  RequestCost cost;
  busy(&cost, 0, 8, {64 << 10});
  EXPECT_LT(cost.worth(), 4096U);
  busy(&cost, 500e3, 8, {64 << 10});
  EXPECT_LT(cost.worth(), 64U << 10);
}

TEST(RequestCost, FollowsAStorageThatChanges) {
  RequestCost cost;
  busy(&cost, 20e3, 8, {128 << 10, 32 << 10});
  busy(&cost, 500e3, 8, {128 << 10, 32 << 10});
  EXPECT_NEAR(cost.request_ns(), 500e3, 50e3);
}

TEST(StorageModel, SmallRequestsAreDeeperThanBlocks) {
  policy::StorageModel model(128 << 10, 256);
  uint64_t now = 1'000'000'000, free = now;
  std::deque<std::pair<uint64_t, policy::StorageModel::Sample>> ends;
  // 10 ms of latency and 100 MB/s.
  const auto run = [&](uint32_t bytes, int requests) {
    for (int i = 0; i < requests; ++i) {
      while (ends.size() < model.depth(now)) {
        const auto sample = model.on_issue(now, static_cast<unsigned>(ends.size()));
        free = std::max(free, now) + uint64_t{bytes} * 10;
        ends.emplace_back(free + 10'000'000, sample);
      }
      now = std::max(now, ends.front().first);
      model.on_done(ends.front().second, bytes, now);
      ends.pop_front();
    }
  };
  run(128 << 10, 3000);
  const unsigned of_blocks = model.depth(now);
  run(4096, 30000);
  EXPECT_GT(model.depth(now), 2 * of_blocks)
      << "or the link idles: " << model.cost().request_ns() << " ns, " << model.cost().byte_ns();
}

}  // namespace
}  // namespace sluice::test
