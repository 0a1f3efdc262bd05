// A pack made of arbitrary bytes. Opening it and reading what it says it has may not crash, hang or
// trip a sanitizer, and what is accepted must hold the reader's promises. The first byte chooses
// whether sizes and checksum of the head are made right first, without which little is ever
// accepted.
#include "optimizer/packs/pack_file.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "optimizer/io/transfer.h"
#include "optimizer/packs/checksum.h"

namespace {

using namespace sluice;
using namespace sluice::optimizer;

void require(bool good) {
  if (!good) abort();
}

void make_right(std::vector<char>* bytes) {
  protocol::PackHeader header;
  if (bytes->size() < sizeof header) return;
  memcpy(&header, bytes->data(), sizeof header);
  header.magic = protocol::kPackMagic;
  header.version = protocol::kPackVersion;
  header.bytes = bytes->size();
  header.samples %= 16;
  header.entry_size = sizeof(protocol::PackEntry);
  header.index_bytes = header.samples * sizeof(protocol::PackEntry);
  header.names_bytes %= bytes->size();
  header.checksum = 0;
  memcpy(bytes->data(), &header, sizeof header);
  const uint64_t head = sizeof header + header.index_bytes + header.names_bytes;
  header.checksum = Checksum::of(bytes->data(), std::min<uint64_t>(head, bytes->size()));
  memcpy(bytes->data(), &header, sizeof header);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::vector<char> bytes(data + 1, data + size);
  if (data[0] % 4 != 0) make_right(&bytes);
  UniqueFd fd(memfd_create("pack", MFD_CLOEXEC));
  require(write_fully(fd.get(), bytes.data(), bytes.size()) == 0);
  const OpenedPack opened = PackFile::adopt(std::move(fd));
  if (opened.file == nullptr) {
    require(opened.error == EBADMSG && !opened.reason.empty());
    return 0;
  }
  require(opened.file->bytes() == bytes.size());
  uint64_t end = opened.file->head_bytes();
  for (const protocol::PackEntry& entry : opened.file->entries()) {
    const PackKey key = opened.file->key(entry);
    require(can_be_packed(key, entry.version));
    require(entry.at == end);
    end += entry.length;
    require(end <= bytes.size());
    std::vector<char> sample;
    const int error = opened.file->read(entry, &sample);
    require(error == opened.file->check(entry) && (error == 0 || error == EBADMSG));
    require(
        std::equal(sample.begin(), sample.end(), bytes.begin() + static_cast<ptrdiff_t>(entry.at)));
  }
  require(end == bytes.size());
  return 0;
}
