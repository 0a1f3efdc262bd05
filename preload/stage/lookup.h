// Finding the staged copy of a path. Async-signal-safe, like the hooked calls: no allocation, no
// lock, errno unchanged; waiting is bounded.
//
// A copy that is found may be outdated: the caller checks whether it still equals its original
// (redirect.cc).
#pragma once

#include <atomic>
#include <cstddef>

#include "protocol/stage.h"

namespace sluice::preload {

// The index of the current optimizer; nullptr while there is none. Indices are never unmapped: a
// thread may be reading one.
extern std::atomic<const protocol::Stage*> g_stage;
extern std::atomic<bool> g_stage_given_up;

// Maps the index behind `fd`, which the caller still owns, and uses it from now on. False if it is
// not a valid index.
bool use_stage(int fd);
// This process uses no copies any more. It still reports files that it changes.
void give_up_stage();

// The index, if it has any copy and this process has not given it up.
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

// Makes the path absolute, without setting the key: `folder` is a descriptor or AT_FDCWD. False, as
// if it had no copy, if the memory cannot be read: the system call itself will report that.
bool absolute_path(int folder, const char* path, StagePath* out);
// The same, and sets the key.
bool stage_path_of(const protocol::Stage& stage, int folder, const char* path, StagePath* out);

// The copy of the path. `wait`: waits, with a deadline, for a copy that is being fetched. False if
// there is none.
bool find_staged(const protocol::Stage& stage, const StagePath& path, bool wait,
                 protocol::StageCopy* copy);

// Whether the optimizer's heartbeat is older than kStageSilentNs, or it ended the stage.
bool stage_silent(const protocol::Stage& stage);

// Whether the copy was compared with its original within SLUICE_STALE seconds.
bool is_fresh(const protocol::StageCopy& copy);

// Whether `copy` is still the staged copy of the path.
bool still_staged(const protocol::Stage& stage, const StagePath& path,
                  const protocol::StageCopy& copy);

// Whether `path` still is the file that was copied: one stat() of the original.
bool still_same(const char* path, const protocol::StageCopy& copy);

}  // namespace sluice::preload
