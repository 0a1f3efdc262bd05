// Finding the staged copy of a path. Async-signal-safe, like the calls that ask: no allocation, no
// lock, no errno; waiting is bounded.
//
// Nothing here is trusted to be right: a copy that is not looked after (the optimizer is silent),
// or was not compared with its original for SLUICE_STALE seconds, is compared by the caller.
#pragma once

#include <atomic>
#include <cstddef>

#include "protocol/stage.h"

namespace sluice::preload {

// The index of the current optimizer; nullptr while there is none, or nothing is staged. Mappings
// stay for the life of the process: a thread may be reading one.
extern std::atomic<const protocol::Stage*> g_stage;

// Maps the index behind `fd`, which stays the caller's, in place of the one before. False if it is
// none of ours.
bool use_stage(int fd);
// The process changed its root, or what it may do: no copies any more.
void give_up_stage();

inline const protocol::Stage* stage_in_use() {
  const protocol::Stage* stage = g_stage.load(std::memory_order_acquire);
  if (__builtin_expect(stage == nullptr, 1)) return nullptr;
  return stage->header.files.load(std::memory_order_relaxed) == 0 ? nullptr : stage;
}

// A path as the stage knows it.
struct StagePath {
  size_t length = 0;  // 0: it cannot have a copy
  protocol::StageKey key;
  char text[protocol::kStagePath];  // absolute
};

// Makes the path absolute, without its key: `folder` is a descriptor or AT_FDCWD. False, as if it
// had no copy, if the memory cannot be read: the system call itself will say so.
bool absolute_path(int folder, const char* path, StagePath* out);
// The same with its key.
bool stage_path_of(const protocol::Stage& stage, int folder, const char* path, StagePath* out);

// The copy of the path. `wait`: one that is being fetched is waited for, with a deadline. False if
// there is none.
bool find_staged(const protocol::Stage& stage, const StagePath& path, bool wait,
                 protocol::StageCopy* copy);

// Whether the copy was compared with its original a short enough time ago, by somebody who is
// still there.
bool is_fresh(const protocol::Stage& stage, const protocol::StageCopy& copy);

// Whether `path` still is the file that was copied: one look at the original.
bool still_same(const char* path, const protocol::StageCopy& copy);

}  // namespace sluice::preload
