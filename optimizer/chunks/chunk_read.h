// One chunk, read whole: a pack whose members are read together. The first that needs a member
// reads the file, with one request and past the page cache where the file system can.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "optimizer/chunks/aligned_buffer.h"
#include "optimizer/packs/pack_head.h"
#include "protocol/pack.h"

namespace sluice::optimizer {

// Any thread; blocks in the file system.
class ChunkRead {
 public:
  // `folder` outlives this.
  ChunkRead(int folder, std::string name) : folder_(folder), name_(std::move(name)) {}

  // The member number `entry`, which must be the whole of the file at `path`. nullptr: the chunk
  // cannot be read, is damaged, or is another one. Valid as long as this is.
  const protocol::PackEntry* member(uint32_t entry, std::string_view path);
  // Writes the member's bytes to `to`, at its offset. 0, or an errno: EBADMSG where they are not
  // those that were packed. What was written is then of no use. REQUIRES: it is from member().
  int copy(const protocol::PackEntry& member, int to) const;
  // Why there are no members; empty: there are. REQUIRES: member() was called.
  const std::string& problem() const { return problem_; }

 private:
  void read();

  const int folder_;
  const std::string name_;
  std::once_flag once_;
  AlignedBuffer buffer_;
  PackHead head_;
  std::string problem_;
};

}  // namespace sluice::optimizer
