// The stage's interface for hooks: a copy to open in place of a file, and its attributes, both only
// within a window (window.h); and reports of changes that inotify does not notice. Without a stage
// each costs one load. errno is preserved.
#pragma once

#include <sys/types.h>

#include "preload/stage/lookup.h"

namespace sluice::preload {

// A descriptor that reads the staged copy of `path`, opened as `flags` say; -1: open the original.
// Not a cancellation point.
int open_staged(int folder, const char* path, int flags);

// The attributes of `path` as they were when it was staged. `follow`: of a symbolic link's target.
// False: use the original.
bool stat_staged(int folder, const char* path, bool follow, protocol::StageCopy* copy);

// The caller is about to change what `path` names: switches descriptors that read its copy to the
// original.
void path_changes(int folder, const char* path);
// The caller gave the file that `path` names another name, which changes its attributes without an
// inotify event.
void path_linked(int folder, const char* path);
// The caller mounted or unmounted a file system: the optimizer drops copies of files below it
// before this returns, for all processes; this process uses no copies any more in any case.
void mounts_changed();

}  // namespace sluice::preload
