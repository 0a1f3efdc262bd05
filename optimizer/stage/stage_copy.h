// Copies a file into the stage, and checks a copied original again. Any thread; blocks, so it runs
// on the threads of the stage service.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "optimizer/chunks/logged_copy.h"
#include "optimizer/io/opened_file.h"
#include "optimizer/packs/pack_store.h"
#include "optimizer/stage/disk_reads.h"
#include "policy/copies/stage_plan.h"
#include "protocol/stage.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {

struct CopyResult {
  bool good = false;
  policy::StagePlan::Failure failure = policy::StagePlan::Failure::kError;  // if not
  std::string why;  // if not: one line, or empty
  protocol::StageStat stat{};
  uint64_t flags = 0;                         // StageCopy::flags
  uint64_t inode = 0;                         // of the copy
  uint64_t charged = 0;                       // bytes of memory that the copy takes
  bool packed = false;                        // the bytes came from a pack
  bool logged = false;                        // the bytes came from the log
  bool chunked = false;                       // the bytes came from a chunk
  uint64_t validated_ns = 0;                  // when the original was, if not during the copy
  policy::FetchTime time;                     // on the thread that read it
  bool cached = false;                        // the whole file was in the page cache already
  std::shared_ptr<const LoggedCopy> damaged;  // CopyRules::logged, if the log had other bytes
};

struct ChunkedCopy;  // chunk_copy.h

struct CopyRules {
  bool any_mount = false;   // also mounts other than network and FUSE
  uint64_t most_bytes = 0;  // larger files are not staged
  // What is read of the following three is counted here, for the fetch; nullptr: it is not.
  std::shared_ptr<DiskReads> reads;
  DiskReads::Fetch fetch{};
  std::shared_ptr<PackStore> packs;          // nullptr: none
  std::shared_ptr<const LoggedCopy> logged;  // nullptr: the log does not have the file
  std::shared_ptr<const ChunkedCopy> chunk;  // nullptr: it is not read with a chunk
};

// A copy whose bytes are to be added to a pack.
struct CopyToPack {
  UniqueFd fd;  // invalid: nothing is to be added
  uint64_t bytes = 0;
  protocol::PackVersion version{};
};

// Copies `path` into `folder` under `name`; the copy appears atomically. The bytes come from the
// chunk, the log or a pack that has the file's present version; else *to_pack is set for adding the
// file to a pack.
CopyResult copy_in(const std::string& path, int folder, uint64_t name, const CopyRules& rules,
                   CopyToPack* to_pack = nullptr);
// Reads `path` into the page cache, unless all of it is `cached`; `charged` is the cache it then
// takes. Fails with kMount also where an open empties the cache, which is tested unless the device
// is in `surviving`. *opened becomes the file as it was opened for this, up to twice, if it can be
// `wanted` so often.
CopyResult read_ahead(const std::string& path, const CopyRules& rules,
                      const std::set<uint64_t>& surviving, unsigned wanted, OpenedFile* opened);
void pack_copy(const std::string& path, const CopyToPack& copy, PackStore* packs);

// Copies a file whose content is in the page cache, all of it, into memory without a name, without
// reading from its storage. False: it is not, or no copy may be made of it. The original is closed,
// which may take as long as its storage wants: what uses the copy waits for none.
bool copy_cached(const std::string& path, const CopyRules& rules, UniqueFd* copy,
                 protocol::StageStat* stat);

// Whether `path` still matches `stat`, by attributes that are forced from storage. Failure:
// kChanged.
CopyResult recheck(const std::string& path, const protocol::StageStat& stat);

}  // namespace sluice::optimizer
