// Copying one file into the stage, and looking at one again. Blocks: runs on the fetcher's
// threads. Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "optimizer/packs/pack_store.h"
#include "policy/planner/stage_plan.h"
#include "protocol/stage.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {

struct CopyResult {
  bool good = false;
  StagePlan::Failure failure = StagePlan::Failure::kError;  // if not
  std::string why;                                          // likewise: one line, or empty
  protocol::StageStat stat{};
  uint64_t flags = 0;    // StageCopy::flags
  uint64_t inode = 0;    // of the copy
  uint64_t charged = 0;  // bytes that the copy takes
  bool packed = false;   // its bytes came from a pack
  bool cached = false;   // all of it was in its page cache
};

struct CopyRules {
  bool any_mount = false;            // not only network and FUSE mounts
  uint64_t most_bytes = 0;           // larger files are not staged
  std::shared_ptr<PackStore> packs;  // nullptr: none
};

// A copy whose bytes are to be added to packs.
struct CopyToPack {
  UniqueFd fd;  // invalid: they are not
  uint64_t bytes = 0;
  protocol::PackVersion version{};
};

// Copies `path` into `folder` under `name`: the copy appears whole or not at all. The bytes come
// from a pack if one has them of the file as it is now; else *to_pack is what to add to one.
CopyResult copy_in(const std::string& path, int folder, uint64_t name, const CopyRules& rules,
                   CopyToPack* to_pack = nullptr);
// Reads `path` into its page cache, what of it is not there yet; `charged` is what that holds then,
// and what could be `cached` before was not read. kMount also where it would not stay until the job
// opens it, which is tried where the device is none of `keep`.
CopyResult read_ahead(const std::string& path, const CopyRules& rules,
                      const std::set<uint64_t>& keep);
void pack_copy(const std::string& path, const CopyToPack& copy, PackStore* packs);

// Whether `path` still is what `stat` says, as the storage itself has it; failure is kChanged if
// not.
CopyResult look_again(const std::string& path, const protocol::StageStat& stat);

}  // namespace sluice::optimizer
