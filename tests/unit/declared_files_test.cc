// Whether what a job declared of its samples' files is what they read.
#include "policy/samples/declared_files.h"

#include <gtest/gtest.h>

#include <vector>

#include "policy/samples/datasets.h"

namespace sluice::test {
namespace {

using namespace sluice::policy;  // NOLINT: every line here is about it

const std::vector<Extent> kA{whole_file(SampleFileId{1})}, kB{whole_file(SampleFileId{2})},
    kBoth{whole_file(SampleFileId{1}), whole_file(SampleFileId{3})};

TEST(DeclaredFiles, AreRefutedByThreeSamplesThatReadOthers) {
  DeclaredFiles files;
  for (uint32_t i = 1; i < DeclaredFiles::kEnough; ++i) {
    files.seen(kA, kB);
    EXPECT_FALSE(files.refuted()) << i;
  }
  files.seen(kA, kB);
  EXPECT_TRUE(files.refuted());
  EXPECT_FALSE(files.refuted()) << "what was counted is forgotten";
}

TEST(DeclaredFiles, SomeExceptionsRefuteNothing) {
  DeclaredFiles files;
  for (int i = 0; i < 100; ++i) {
    files.seen(kA, kA);
    files.seen(kA, kBoth);  // a part of it is as declared
    files.seen(kBoth, kA);
    files.seen(kA, kB);
    EXPECT_FALSE(files.refuted()) << i;
  }
}

TEST(DeclaredFiles, AreRefutedAfterManyThatAgreed) {
  DeclaredFiles files;
  for (int i = 0; i < 100'000; ++i) files.seen(kA, kA);
  EXPECT_FALSE(files.refuted());
  uint32_t more = 0;
  for (; !files.refuted(); ++more) files.seen(kA, kB);
  EXPECT_LT(more, 2 * DeclaredFiles::kOfLate) << "the list was replaced";
}

TEST(DeclaredFiles, AreRefutedByCopiesThatNoSampleOpens) {
  DeclaredFiles files;
  for (uint32_t i = 0; i < 10 * DeclaredFiles::kUnopened; ++i) files.was_offered(i);
  EXPECT_FALSE(files.refuted()) << "a report takes a while";
  files.was_offered(DeclaredFiles::kUnopenedNs);
  EXPECT_TRUE(files.refuted());
  files.seen(kA, kB);
  for (uint32_t i = 0; i <= DeclaredFiles::kUnopened; ++i) files.was_offered(i * 10'000'000ULL);
  EXPECT_TRUE(files.refuted()) << "another file was opened once";
  for (uint32_t i = 0; i + 1 < DeclaredFiles::kUnopened; ++i)
    files.was_offered(i * 1'000'000'000ULL);
  EXPECT_FALSE(files.refuted()) << "too few";
  files.seen(kA, kA);
  for (uint32_t i = 0; i < 1000; ++i) files.was_offered(i * 1'000'000'000ULL);
  EXPECT_FALSE(files.refuted()) << "one was opened";
}

TEST(DeclaredFiles, CopiesThatAreOpenedAreReadWhateverIsReported) {
  DeclaredFiles files;
  for (uint32_t i = 0; i < 10 * DeclaredFiles::kUnopened; ++i) {
    files.was_offered(i * 10'000'000ULL);
    if (i % 10 == 0) files.opened();  // a batch that is read with one call
    EXPECT_FALSE(files.refuted()) << i;
  }
}

TEST(DeclaredFiles, ADatasetComparesThemWithWhatIsSeen) {
  constexpr SessionId kSession{1};
  BookMemory memory;
  Datasets datasets(&memory);
  const DatasetId set = datasets.use(kSession, "set", 20);
  for (uint64_t i = 0; i < 20; ++i) {
    EXPECT_TRUE(datasets.locate(kSession, set, i,
                                {whole_file(SampleFileId{static_cast<uint32_t>(i + 1)})},
                                i < 15 ? Source::kDeclared : Source::kStored));
  }
  for (uint64_t i = 13; i < 20; ++i) datasets.learn(set, i, {{0, 4096, FileId{1}}}, Source::kSeen);
  EXPECT_FALSE(datasets.refuted(set)) << "two, and others that the job did not declare";
  datasets.learn(set, 13, {{4096, 4096, FileId{1}}}, Source::kSeen);
  EXPECT_FALSE(datasets.refuted(set)) << "this one is known from reading it";
  datasets.learn(set, 2, {{0, 4096, FileId{1}}}, Source::kSeen);
  EXPECT_TRUE(datasets.refuted(set));
  datasets.drop(set, Source::kDeclared);
  EXPECT_EQ(datasets.find(set)->set.known(), 8U);
  EXPECT_FALSE(datasets.refuted(DatasetId{77})) << "there is none";
}

}  // namespace
}  // namespace sluice::test
