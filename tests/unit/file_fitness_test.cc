// What is no sample's file.
#include "policy/samples/file_fitness.h"

#include <gtest/gtest.h>

#include "policy/samples/file_table.h"

namespace sluice::policy {
namespace {

using protocol::FileUse;

TEST(FileFitness, NothingIsSaidOfASample) {
  FileFitness fitness;
  EXPECT_FALSE(fitness.unfit(SampleFileId{1}));
  EXPECT_EQ(fitness.count(), 0U);
}

TEST(FileFitness, WhatNoSampleIsUsedForIsEnoughOnce) {
  for (const FileUse use : {FileUse::kShared, FileUse::kLocked, FileUse::kMapped}) {
    FileFitness fitness;
    EXPECT_TRUE(fitness.note(SampleFileId{7}, use));
    EXPECT_FALSE(fitness.note(SampleFileId{7}, use)) << "it was unfit before";
    EXPECT_TRUE(fitness.unfit(SampleFileId{7}));
    EXPECT_FALSE(fitness.unfit(SampleFileId{8}));
    EXPECT_FALSE(fitness.note(SampleFileId{7}, FileUse::kReadWhole));
    EXPECT_TRUE(fitness.unfit(SampleFileId{7})) << "a container may be read whole, too";
    EXPECT_EQ(fitness.count(), 1U);
  }
}

TEST(FileFitness, AHeaderThatIsLookedAtFirstIsNoPart) {
  FileFitness fitness;
  EXPECT_TRUE(fitness.note(SampleFileId{3}, FileUse::kReadInPart));
  EXPECT_FALSE(fitness.note(SampleFileId{3}, FileUse::kReadWhole));
  EXPECT_FALSE(fitness.unfit(SampleFileId{3}));
  EXPECT_FALSE(fitness.note(SampleFileId{3}, FileUse::kReadInPart));
  EXPECT_FALSE(fitness.unfit(SampleFileId{3}));
  EXPECT_EQ(fitness.count(), 0U);
}

TEST(FileFitness, AnUnknownUseSaysNothing) {
  FileFitness fitness;
  EXPECT_FALSE(fitness.note(SampleFileId{3}, static_cast<FileUse>(1U << 20)));
  EXPECT_FALSE(fitness.note(SampleFileId{3}, static_cast<FileUse>(1U << 20 | 1)));
  EXPECT_FALSE(fitness.unfit(SampleFileId{3}));
}

TEST(FileTable, ALockedFileIsFetchedWhereOriginalsAre) {
  FileTable files;
  const SampleFileId locked = files.intern("/data/locked");
  const SampleFileId shared = files.intern("/data/shared");
  files.note_use(locked, FileUse::kLocked);
  files.note_use(shared, FileUse::kLocked);
  files.note_use(shared, FileUse::kShared);
  EXPECT_TRUE(files.only_locked(locked));
  EXPECT_FALSE(files.only_locked(shared));
  EXPECT_FALSE(files.only_locked(files.intern("/data/other")));
  EXPECT_EQ(files.refused(locked), FileTable::Refused::kForGood);
  files.accept_locked();
  EXPECT_EQ(files.refused(locked), FileTable::Refused::kNo);
  EXPECT_EQ(files.refused(shared), FileTable::Refused::kForGood);
}

TEST(FileTable, AnUnfitFileIsRefusedWhateverIsForgiven) {
  FileTable files;
  const SampleFileId one = files.intern("/data/one");
  const SampleFileId other = files.intern("/data/other");
  EXPECT_TRUE(files.note_use(one, FileUse::kLocked));
  files.retry_refused();
  files.accept_folders();
  EXPECT_EQ(files.refused(one), FileTable::Refused::kForGood);
  EXPECT_EQ(files.refused(other), FileTable::Refused::kNo);
}

}  // namespace
}  // namespace sluice::policy
