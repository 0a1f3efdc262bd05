// Packs of a folder, from the first session on until they are released for others.
#include "optimizer/services/stage/copy_packer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "tests/unit/pack_data.h"
#include "tests/unit/with_mailbox.h"

namespace sluice::optimizer {
namespace {

constexpr uint64_t kBytes = 1 << 30;

class CopyPackerTest : public test::WithMailbox {
 protected:
  void use(const test::TemporaryFolder& folder) {
    packer_.use(folder.path, kBytes);
    until([this] { return packer_.packs() != nullptr; });
  }

  test::TemporaryFolder folder_, other_;
  CopyPacker packer_{mailbox_};
};

TEST_F(CopyPackerTest, ReleasedPacksAreFreeForOthers) {
  use(folder_);
  packer_.release();
  EXPECT_EQ(packer_.packs(), nullptr);
  EXPECT_TRUE(packer_.view()) << "their last state";
  CopyPacker second(mailbox_);
  until([&] {  // its lock goes with the last that has them, some time later
    if (second.packs() == nullptr) second.use(folder_.path, kBytes);
    return second.packs() != nullptr;
  });
}

// A job that began while a copy was still being packed for the one before had no packs at all.
TEST_F(CopyPackerTest, TheNextJobWaitsForPacksThatAThreadStillHas) {
  for (int job = 0; job < 20; ++job) {
    use(folder_);
    std::shared_ptr<PackStore> copying = packer_.packs();
    packer_.release();
    packer_.use(folder_.path, kBytes);
    EXPECT_EQ(packer_.packs(), nullptr) << "they are not closed yet";
    copying.reset();
    until([this] { return packer_.packs() != nullptr; });
    packer_.release();
  }
}

TEST_F(CopyPackerTest, AnotherFolderDoesNotWait) {
  use(folder_);
  const std::shared_ptr<PackStore> copying = packer_.packs();
  packer_.release();
  use(other_);
  EXPECT_NE(packer_.packs(), copying);
}

TEST_F(CopyPackerTest, AJobThatEndsBeforeItsPacksAreOpenLeavesThemToTheNext) {
  for (int job = 0; job < 20; ++job) {
    packer_.use(job % 2 == 0 ? folder_.path : other_.path, kBytes);
    packer_.release();
  }
  use(folder_);
}

TEST_F(CopyPackerTest, AFolderThatCannotBeUsedMayBeRequestedAgain) {
  const std::string none = folder_.path / "none";
  packer_.use(none, kBytes);
  until([&] {  // the failure leaves the request to the next job
    packer_.use(other_.path, kBytes);
    return packer_.packs() != nullptr;
  });
  EXPECT_TRUE(std::filesystem::exists(packs_folder(other_.path)));
}

}  // namespace
}  // namespace sluice::optimizer
