// Folders of files that many threads open: at most one look-up of each at a time.
#include "optimizer/stage/folder_visits.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace sluice::optimizer {
namespace {

constexpr auto kLimit = std::chrono::seconds(60);

// A storage whose look-ups of one folder wait until they may end.
struct Storage {
  explicit Storage(std::string slow) : slow_folder(std::move(slow)) {}

  bool look_up(const std::string& folder) {
    std::unique_lock lock(mutex);
    ++asked[folder];
    changed.notify_all();
    if (folder == slow_folder) changed.wait_for(lock, kLimit, [this] { return may_end; });
    return remembers_nothing;
  }
  bool wait_for(const std::string& folder, unsigned count) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, kLimit, [&] { return asked[folder] >= count; });
  }
  unsigned count(const std::string& folder) {
    const std::lock_guard lock(mutex);
    return asked[folder];
  }
  void end() {
    const std::lock_guard lock(mutex);
    may_end = true;
    changed.notify_all();
  }

  const std::string slow_folder;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, unsigned> asked;
  bool may_end = false, remembers_nothing = false;
};

// Each second all threads of a mount asked for the same ten folders at once: of 500 requests a
// second that the storage answered, 90 were for those.
TEST(FolderVisits, ThreadsWaitForOneLookUp) {
  Storage storage("/data");
  FolderVisits visits([&](const std::string& folder) { return storage.look_up(folder); });
  std::atomic<unsigned> ended{0};
  std::vector<std::thread> threads;
  const auto visit = [&] {
    visits.visit("/data/a");
    ++ended;
  };
  threads.emplace_back(visit);
  ASSERT_TRUE(storage.wait_for("/data", 1));
  for (unsigned i = 0; i < 7; ++i) threads.emplace_back(visit);
  const auto deadline = std::chrono::steady_clock::now() + kLimit;
  // All for this folder, as there is none above it: one that has waited still counts until it runs.
  while (visits.waiting() < 7 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  visits.visit("/more/a");
  EXPECT_EQ(storage.count("/more"), 1U);
  EXPECT_EQ(storage.count("/data"), 1U);
  EXPECT_EQ(ended, 0U);
  storage.end();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(storage.count("/data"), 1U);
  EXPECT_EQ(ended, 8U);
}

TEST(FolderVisits, AFolderIsLookedUpByEachVisitThatFindsNone) {
  Storage storage("");
  FolderVisits visits([&](const std::string& folder) { return storage.look_up(folder); });
  for (unsigned i = 0; i < 3; ++i) visits.visit("/a/b/c");
  EXPECT_EQ(storage.asked, (std::map<std::string, unsigned>{{"/a", 3}, {"/a/b", 3}}));
  visits.visit("/c");
  EXPECT_EQ(storage.asked.size(), 2U);
}

// A mount without a cache of names would be asked for each of them once more.
TEST(FolderVisits, WhereTheKernelRemembersNothingFewPathsAreVisited) {
  constexpr unsigned kPaths = 20'000;
  Storage storage("");
  FolderVisits visits([&](const std::string& folder) { return storage.look_up(folder); });
  for (unsigned i = 0; i < kPaths; ++i) visits.visit("/a/b");
  EXPECT_EQ(storage.count("/a"), kPaths);
  storage.remembers_nothing = true;
  for (unsigned i = 0; i < kPaths; ++i) visits.visit("/a/b");
  EXPECT_LE(storage.count("/a"), kPaths + kPaths / 10);
  storage.remembers_nothing = false;
  for (unsigned i = 0; i < kPaths; ++i) visits.visit("/a/b");
  EXPECT_GE(storage.count("/a"), kPaths + kPaths / 2) << "it may be another mount's turn";
}

TEST(FolderVisits, OfFoldersThatAreGoneNothingIsSaid) {
  FolderVisits visits;
  visits.visit("/nothing/of/that/name");
}

}  // namespace
}  // namespace sluice::optimizer
