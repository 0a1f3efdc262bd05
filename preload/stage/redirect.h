// What hooks ask of the stage: a copy to open instead of a file, its attributes, and to be told of
// changes. Without a stage each costs one look at a pointer.
#pragma once

#include <sys/types.h>

#include "preload/stage/lookup.h"

namespace sluice::preload {

// A descriptor that reads the staged copy of `path`, opened as `flags` say; -1: open the original.
// errno is kept. Not a cancellation point.
int open_staged(int folder, const char* path, int flags);

// The attributes of `path` as they were when it was staged. `follow`: of what a symbolic link leads
// to. False: ask the original. errno is kept.
bool stat_staged(int folder, const char* path, bool follow, protocol::StageCopy* copy);

// The caller changed what `path` names, or is about to: once this returns no copy that is opened
// holds what was there before. One message if anything is staged. errno is kept.
void path_changed(int folder, const char* path);
// The caller opened `fd` for writing.
void opened_for_writing(int fd, int folder, const char* path);

}  // namespace sluice::preload
