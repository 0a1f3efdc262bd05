// The numbers of files that samples are.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "policy/copies/stage_plan.h"

namespace sluice::policy {
namespace {

TEST(FileTable, FindsWhatItHasAndNothingElse) {
  FileTable files;
  std::map<std::string, SampleFileId> known;
  std::mt19937 draw(1);
  for (int i = 0; i < 5000; ++i) {
    const std::string path =
        "/data/" + std::to_string(draw() % 50) + "/" + std::to_string(draw() % 1000);
    const SampleFileId file = files.intern(path);
    const auto [at, added] = known.emplace(path, file);
    EXPECT_EQ(at->second, file) << path;
  }
  EXPECT_EQ(files.size(), known.size());
  for (const auto& [path, file] : known) {
    EXPECT_EQ(files.path(file), path);
    EXPECT_EQ(files.find(path), file);
  }
  EXPECT_EQ(files.find("/data/1/none"), FileTable::kNone);
  EXPECT_EQ(files.find("/data/none/1"), FileTable::kNone);
  EXPECT_TRUE(files.has_folder_below("/data"));
  EXPECT_TRUE(files.has_folder_below("/data/7"));
  EXPECT_FALSE(files.has_folder_below("/dat"));
  EXPECT_FALSE(files.has_folder_below("/data/7/1"));
}

TEST(FileTable, EveryByteThatANameMayHold) {
  FileTable files;
  std::string name;
  for (int c = 1; c < 256; ++c) {
    if (c != '/') name += static_cast<char>(c);
  }
  const SampleFileId file = files.intern("/d/" + name);
  EXPECT_EQ(files.path(file), "/d/" + name);
  EXPECT_EQ(files.path(files.intern("/top")), "/top");
}

TEST(FileTable, UnknownSizesAreTheMeanOfTheKnown) {
  FileTable files;
  const SampleFileId a = files.intern("/a");
  const SampleFileId b = files.intern("/b");
  const SampleFileId c = files.intern("/c");
  files.set_bytes(a, 1000);
  files.set_bytes(b, 3000);
  EXPECT_EQ(files.bytes(c), 2000U);
  files.set_bytes(b, 1000);
  EXPECT_EQ(files.bytes(c), 1000U);
  files.set_bytes(c, 0);
  EXPECT_EQ(files.bytes(c), 0U);
}

}  // namespace
}  // namespace sluice::policy
