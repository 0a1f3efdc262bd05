// Large ranges that are read with several requests: every byte, and every way in which one fails.
#include "optimizer/io/read_at_once.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "optimizer/chunks/aligned_buffer.h"
#include "optimizer/io/transfer.h"
#include "policy/util/random.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {
namespace {

std::vector<char> content(size_t size) {
  Random random(size);
  std::vector<char> bytes(size);
  for (char& byte : bytes) byte = static_cast<char>(random.below(256));
  return bytes;
}

UniqueFd file_of(const std::vector<char>& bytes) {
  std::string name = testing::TempDir() + "read-at-once-XXXXXX";
  UniqueFd fd(mkstemp(name.data()));
  unlink(name.c_str());
  EXPECT_EQ(write_fully(fd.get(), bytes.data(), bytes.size()), 0);
  return fd;
}

bool holds(const AlignedBuffer& buffer, const std::vector<char>& bytes) {
  return std::equal(bytes.begin(), bytes.end(), reinterpret_cast<const char*>(buffer.data()));
}

TEST(ReadAtOnceTest, EveryByteComesWhateverTheSize) {
  for (const size_t size : {size_t{1}, size_t{4096}, kRequestBytes - 1, kRequestBytes,
                            kRequestBytes + 1, 7 * kRequestBytes / 2, 40 * kRequestBytes + 17}) {
    const std::vector<char> bytes = content(size);
    const UniqueFd fd = file_of(bytes);
    AlignedBuffer buffer(size);
    EXPECT_EQ(read_at_once(fd.get(), buffer.data(), size, buffer.size()), 0) << size;
    EXPECT_TRUE(holds(buffer, bytes)) << size;
  }
}

TEST(ReadAtOnceTest, DirectReadsTakeWholeBlocks) {
  const std::vector<char> bytes = content(5 * kRequestBytes / 2 + 100);
  const UniqueFd fd = file_of(bytes);
  fdatasync(fd.get());
  const std::string own = "/proc/self/fd/" + std::to_string(fd.get());
  const UniqueFd direct(open(own.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  if (!direct) GTEST_SKIP() << "no O_DIRECT here";
  AlignedBuffer buffer(bytes.size());
  EXPECT_EQ(read_at_once(direct.get(), buffer.data(), bytes.size(), buffer.size()), 0);
  EXPECT_TRUE(holds(buffer, bytes));
}

TEST(ReadAtOnceTest, AFileThatEndsBeforeIsReported) {
  const UniqueFd fd = file_of(content(2 * kRequestBytes + 5));
  for (const size_t size : {2 * kRequestBytes + 6, 3 * kRequestBytes, 9 * kRequestBytes}) {
    AlignedBuffer buffer(size);
    EXPECT_EQ(read_at_once(fd.get(), buffer.data(), size, buffer.size()), ENODATA) << size;
  }
}

TEST(ReadAtOnceTest, WhatCannotBeReadIsReported) {
  AlignedBuffer buffer(3 * kRequestBytes);
  const UniqueFd folder(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  EXPECT_EQ(read_at_once(folder.get(), buffer.data(), buffer.size(), buffer.size()), EISDIR);
  EXPECT_EQ(read_at_once(-1, buffer.data(), buffer.size(), buffer.size()), EBADF);
}

}  // namespace
}  // namespace sluice::optimizer
