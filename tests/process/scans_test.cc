// Folders that are listed ahead of a job that walks through a tree, by a real optimizer.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/process/optimizer_client.h"

namespace sluice::test {
namespace {

constexpr unsigned kFolders = 40;

class ScansTest : public testing::Test {
 protected:
  void SetUp() override {
    for (unsigned i = 0; i < kFolders; ++i) std::filesystem::create_directories(folder(i) + "/in");
    ASSERT_TRUE(client_.hello(optimizer_.socket()));
    ASSERT_TRUE(client_.claim());
  }

  std::string folder(unsigned number) const {
    const std::string digits = std::to_string(1000 + number);
    return tree_.path() + "/f" + digits;
  }
  std::optional<Reply> send(int fd) const {
    const protocol::Listed body{client_.welcome().session, client_.welcome().token, 1'000'000};
    const Connection connection(optimizer_.socket());
    if (!connection.send(protocol::MessageKind::kListed, bytes_of(body), fd)) return std::nullopt;
    return connection.receive();
  }
  std::optional<protocol::MessageKind> report(const std::string& path) const {
    const UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const std::optional<Reply> reply = send(fd.get());
    return reply ? std::optional(reply->header.kind) : std::nullopt;
  }
  bool opened(const std::string& path) const {
    return report(path) == protocol::MessageKind::kDone;
  }
  uint64_t listed() const { return client_.metric(protocol::SessionMetric::folders_listed); }
  // How many descriptors the optimizer has within the tree.
  unsigned held() const {
    unsigned count = 0;
    const std::string folder = "/proc/" + std::to_string(optimizer_.pid()) + "/fd";
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      std::error_code ignored;
      count += std::filesystem::read_symlink(entry, ignored).string().rfind(tree_.path(), 0) == 0;
    }
    return count;
  }

  OptimizerProcess optimizer_;
  TempFolder tree_;
  Client client_;
};

TEST_F(ScansTest, NeighboursOfTwoFoldersAreListed) {
  EXPECT_TRUE(opened(folder(0)));
  EXPECT_TRUE(opened(folder(1)));
  // The tree itself, and at least the first window.
  EXPECT_TRUE(eventually([&] { return listed() >= 1 + 4; })) << listed();
  for (unsigned i = 2; i < kFolders; ++i) EXPECT_TRUE(report(folder(i)));
  EXPECT_TRUE(client_.bye());
  EXPECT_EQ(held(), 0);
}

TEST_F(ScansTest, ReportsInVainAreRefusedInTheEnd) {
  EXPECT_TRUE(eventually([&] { return report(folder(0)) == protocol::MessageKind::kRefused; }));
  EXPECT_EQ(listed(), 0);
}

TEST_F(ScansTest, NothingIsHeldOnceTheSessionHasEnded) {
  EXPECT_TRUE(opened(folder(0)));
  EXPECT_TRUE(opened(folder(1)));
  EXPECT_TRUE(client_.bye());
  EXPECT_EQ(held(), 0);
}

TEST_F(ScansTest, OnlyFoldersAreTaken) {
  const std::string path = tree_.cold_file("file", 5000);
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]), writer(ends[1]);
  for (const int fd : {file.get(), reader.get()}) {
    const auto reply = send(fd);
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->header.kind, protocol::MessageKind::kDone);
  }
  const auto without = send(-1);
  ASSERT_TRUE(without);
  EXPECT_EQ(without->header.kind, protocol::MessageKind::kRefused);
  EXPECT_TRUE(opened("/"));  // nothing is above it
  EXPECT_TRUE(opened("/proc"));
  EXPECT_EQ(listed(), 0);
}

TEST_F(ScansTest, LinksAreNotFollowedAndFoldersMayVanish) {
  TempFolder elsewhere;
  std::filesystem::create_directory(elsewhere.path() + "/one");
  std::filesystem::create_directory_symlink(elsewhere.path(), tree_.path() + "/a-link");
  ASSERT_EQ(chmod(folder(5).c_str(), 0), 0);
  EXPECT_TRUE(opened(folder(0)));
  EXPECT_TRUE(opened(folder(1)));
  for (unsigned i = 2; i < kFolders; ++i) std::filesystem::remove_all(folder(i));
  EXPECT_TRUE(eventually([&] { return listed() >= 1; }));
  EXPECT_TRUE(opened(folder(0)));
  EXPECT_FALSE(optimizer_.ended());
}

}  // namespace
}  // namespace sluice::test
