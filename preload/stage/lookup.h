// Finding the staged copy of a path. Async-signal-safe, like the calls that ask: no allocation, no
// lock, no errno; waiting is bounded.
//
// Nothing here is trusted to be right: whether a copy still is what its original is, is the
// caller's to find out (redirect.cc).
#pragma once

#include <atomic>
#include <cstddef>

#include "protocol/stage.h"

namespace sluice::preload {

// The index of the current optimizer; nullptr while there is none. Mappings stay for the life of
// the process: a thread may be reading one.
extern std::atomic<const protocol::Stage*> g_stage;
extern std::atomic<bool> g_stage_given_up;

// Maps the index behind `fd`, which stays the caller's, in place of the one before. False if it is
// none of ours.
bool use_stage(int fd);
// No copies in this process any more. What it changes is still told.
void give_up_stage();

// The index, if something is staged that this process may use.
inline const protocol::Stage* stage_in_use() {
  const protocol::Stage* stage = g_stage.load(std::memory_order_acquire);
  if (__builtin_expect(stage == nullptr, 1)) return nullptr;
  if (g_stage_given_up.load(std::memory_order_acquire)) return nullptr;
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

// Whether the optimizer gave no sign of life for a second, or ended the stage.
bool stage_silent(const protocol::Stage& stage);

// Whether the copy was compared with its original within SLUICE_STALE seconds.
bool is_fresh(const protocol::StageCopy& copy);

// Whether the path's copy still is this one.
bool still_staged(const protocol::Stage& stage, const StagePath& path,
                  const protocol::StageCopy& copy);

// Whether `path` still is the file that was copied: one look at the original.
bool still_same(const char* path, const protocol::StageCopy& copy);

}  // namespace sluice::preload
