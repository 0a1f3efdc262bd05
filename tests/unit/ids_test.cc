// Ids of different kinds: an argument of the wrong kind does not compile.
#include "policy/util/ids.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <type_traits>
#include <unordered_set>

#include "policy/copies/copy_table.h"
#include "policy/samples/job_orders.h"

namespace sluice::policy {
namespace {

// A call compiles with the right kinds, and with no others.
template <typename Session, typename Dataset>
concept HasOrder = requires(const JobOrders& orders, Session session, Dataset dataset) {
  orders.running(session, dataset);
};
static_assert(HasOrder<SessionId, DatasetId>);
static_assert(!HasOrder<DatasetId, SessionId>, "swapped");
static_assert(!HasOrder<SessionId, uint32_t> && !HasOrder<uint32_t, DatasetId>);
static_assert(!std::is_convertible_v<SessionId, uint32_t>);

// Both kinds of file have numbers from 1.
template <typename File>
concept HasCopy = requires(const CopyTable& table, File file) {
  table.has(file);
};
static_assert(HasCopy<SampleFileId>);
static_assert(!HasCopy<FileId> && !HasCopy<FileRef> && !HasCopy<uint32_t>);
template <typename File>
concept IsFollowed = std::is_convertible_v<File, FileRef>;
static_assert(IsFollowed<FileId>);
static_assert(!IsFollowed<SampleFileId> && !IsFollowed<uint32_t>, "whole_file() makes these");

// As cheap as the number.
static_assert(sizeof(SessionId) == sizeof(uint32_t) && sizeof(DatasetId) == sizeof(uint32_t));
static_assert(sizeof(FileId) == sizeof(uint32_t) && sizeof(SampleFileId) == sizeof(uint32_t));
static_assert(sizeof(FileRef) == sizeof(uint32_t));
static_assert(std::is_trivially_copyable_v<SessionId> && std::is_trivially_copyable_v<FileRef>);

TEST(Ids, AreOrderedAndHashable) {
  const std::map<SessionId, int> ordered{{SessionId{9}, 0}, {SessionId{2}, 0}};
  EXPECT_EQ(ordered.begin()->first, SessionId{2});
  const std::unordered_set<SessionId> hashed{SessionId{9}, SessionId{2}};
  EXPECT_EQ(hashed.count(SessionId{9}), 1U);
  EXPECT_EQ(hashed.count(SessionId{3}), 0U);
}

TEST(Ids, ZeroNamesNothing) {
  EXPECT_EQ(SessionId{}, kNoSession);
  EXPECT_EQ(DatasetId{}, kNoDataset);
  EXPECT_EQ(FileRef().followed(), kNoFile);
  EXPECT_EQ(FileRef().whole(), FileTable::kNone);
  EXPECT_EQ(number(kNoSession), 0U);
  EXPECT_EQ(number(SessionId{UINT32_MAX}), UINT32_MAX);
}

TEST(Ids, AFileIsOfOneKind) {
  const FileRef followed = FileId{7};
  EXPECT_FALSE(followed.is_whole());
  EXPECT_EQ(followed.followed(), FileId{7});
  EXPECT_EQ(followed.whole(), FileTable::kNone);
  const FileRef whole = FileRef::whole_file(SampleFileId{7});
  EXPECT_TRUE(whole.is_whole());
  EXPECT_EQ(whole.whole(), SampleFileId{7});
  EXPECT_EQ(whole.followed(), kNoFile);
}

}  // namespace
}  // namespace sluice::policy
