// What a thread does to bring a file into the stage. Blocks in the file system; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "optimizer/stage/stage_copy.h"
#include "optimizer/stage/stage_folder.h"
#include "optimizer/stage/stage_watch.h"

namespace sluice::optimizer {

struct CopyJob {
  std::string path, above;  // the file, and its folder
  uint64_t name = 0;        // of the copy
  CopyRules rules;
};

struct CopyDone {
  CopyResult result;
  uint64_t begun_ns = 0;
  bool unseen = false;  // no watch will notice a change of the original
  std::shared_ptr<CopyToPack> to_pack;
};

CopyDone make_copy(const CopyJob& job, StageFolder* folder, StageWatch* watch);

}  // namespace sluice::optimizer
