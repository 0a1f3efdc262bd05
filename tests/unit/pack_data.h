// What the tests of packs share: a temporary folder, samples with contents of their own, and a
// descriptor that holds some bytes.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "optimizer/io/transfer.h"
#include "optimizer/packs/checksum.h"
#include "optimizer/packs/pack_file.h"
#include "optimizer/packs/pack_folder.h"
#include "policy/util/random.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer::test {

namespace fs = std::filesystem;
using protocol::PackEntry;
using protocol::PackHeader;
using protocol::PackVersion;

struct TemporaryFolder {
  TemporaryFolder() {
    char name[] = "/tmp/packs-XXXXXX";
    path = mkdtemp(name);
    fd.reset(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { fs::remove_all(path); }

  fs::path path;
  UniqueFd fd;
};

// What a sample holds follows from its number and its original's version.
inline std::vector<char> contents(uint64_t number, uint64_t length, uint64_t state = 0) {
  std::vector<char> bytes(length);
  uint64_t word = mixed(number * 1000 + state);
  for (size_t at = 0; at < bytes.size(); ++at) {
    if (at % 8 == 0) word = mixed(word);
    bytes[at] = static_cast<char>(word >> at % 8 * 8);
  }
  return bytes;
}

inline PackVersion version(uint64_t size, uint64_t state = 0) {
  return {1000 + state, size, 1700000000, -5, 999999999, 0};
}

inline UniqueFd memory(const std::vector<char>& bytes) {
  UniqueFd fd(memfd_create("sample", MFD_CLOEXEC));
  EXPECT_EQ(write_fully(fd.get(), bytes.data(), bytes.size()), 0);
  return fd;
}

inline std::vector<char> all_of(int fd) {
  std::vector<char> bytes(static_cast<size_t>(lseek(fd, 0, SEEK_END)));
  EXPECT_EQ(read_fully(fd, bytes.data(), bytes.size(), 0), 0);
  return bytes;
}

inline std::vector<char> read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_file(const fs::path& path, const std::vector<char>& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// Makes the checksum of a changed head right again, so that what comes after it is looked at.
inline void sign(std::vector<char>* pack) {
  PackHeader header;
  memcpy(&header, pack->data(), sizeof header);
  header.checksum = 0;
  memcpy(pack->data(), &header, sizeof header);
  const uint64_t head = sizeof header + header.index_bytes + header.names_bytes;
  header.checksum = Checksum::of(pack->data(), std::min<uint64_t>(head, pack->size()));
  memcpy(pack->data(), &header, sizeof header);
}

}  // namespace sluice::optimizer::test
