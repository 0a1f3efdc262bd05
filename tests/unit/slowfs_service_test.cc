#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "bench/slowfs/service.h"

namespace sluice::slowfs {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kStart = 1'000'000 * kMs;

TEST(Service, LatencyAloneDelaysEachRequestByItself) {
  Service service(0, 0);
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(service.admit(kStart, 3 * kMs, 131072), kStart + 3 * kMs);
}

TEST(Service, LinkCarriesItsRateAndNoMore) {
  std::mt19937_64 random(7);
  for (const double rate : {1e6, 100e6, 400e6}) {
    Service service(0, rate);
    uint64_t now = kStart;
    uint64_t bytes = 0;
    uint64_t end = 0;
    // Always a few requests waiting, of any size, sent at odd moments.
    for (int i = 0; i < 20000; ++i) {
      const uint64_t size = 1 + random() % (1 << 20);
      end = service.admit(now, kMs, size);
      bytes += size;
      if (end > now + 4 * kMs) now = end - 3 * kMs + random() % kMs;
    }
    const double seconds = static_cast<double>(end - kStart - kMs) / 1e9;
    EXPECT_NEAR(static_cast<double>(bytes) / seconds / rate, 1, 1e-4);
  }
}

TEST(Service, AnswersSoManyRequestsASecond) {
  Service service(0, 0, 2000);
  for (uint64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(service.admit(kStart, 2 * kMs, 100), kStart + i * kMs / 2 + 2 * kMs);
    // What belongs to it takes no turn.
    EXPECT_EQ(service.admit(kStart, 2 * kMs, 0, false), kStart + 2 * kMs);
  }
  EXPECT_EQ(service.counted(), 1000);
  const uint64_t later = kStart + 10'000 * kMs;
  EXPECT_EQ(service.admit(later, 0, 0), later);  // idle time is not saved up
  EXPECT_EQ(service.admit(later, 0, 0), later + kMs / 2);
}

TEST(Service, IdleTimeIsNotSavedUp) {
  Service service(0, 1e6);
  service.admit(kStart, 0, 1000);
  const uint64_t later = kStart + 10'000 * kMs;
  EXPECT_EQ(service.admit(later, 0, 1000), later + kMs);
  EXPECT_EQ(service.admit(later, 0, 1000), later + 2 * kMs);
}

TEST(Service, MetadataDoesNotWaitForTheLink) {
  Service service(0, 1e6);
  service.admit(kStart, 0, 1'000'000);
  EXPECT_EQ(service.admit(kStart, kMs, 0), kStart + kMs);
}

TEST(Service, NeverMoreThanParallelAtOnce) {
  std::mt19937_64 random(11);
  for (const uint32_t parallel : {1U, 4U, 17U}) {
    Service service(parallel, 50e6);
    std::vector<std::pair<uint64_t, int>> edges;  // time, +1 begins or -1 ends
    uint64_t now = kStart;
    uint64_t last = 0;
    for (int i = 0; i < 5000; ++i) {
      now += random() % kMs;
      const uint64_t latency = kMs + random() % (4 * kMs);
      const uint64_t bytes = random() % 3 == 0 ? random() % 65536 : 0;
      const uint64_t end = service.admit(now, latency, bytes);
      EXPECT_GE(end, now + latency);
      // What is answered takes at least its latency before its end.
      edges.emplace_back(end - latency, 1);
      edges.emplace_back(end, -1);
      last = std::max(last, end);
    }
    std::sort(edges.begin(), edges.end());
    int64_t in_service = 0;
    int64_t most = 0;
    for (const auto& [time, step] : edges) most = std::max(most, in_service += step);
    EXPECT_LE(most, static_cast<int64_t>(parallel));
  }
}

TEST(Service, ParallelPlacesAreAllUsed) {
  Service service(4, 0);
  uint64_t end = 0;
  for (int i = 0; i < 40; ++i) end = std::max(end, service.admit(kStart, 20 * kMs, 0));
  EXPECT_EQ(end, kStart + 200 * kMs);
}

}  // namespace
}  // namespace sluice::slowfs
