// What hooks ask of the stage: a copy to open instead of a file, and its attributes, both in a
// window (window.h) alone; and a notice of changes that inotify does not report. Without a stage
// each costs one look at a pointer. errno is kept.
#pragma once

#include <sys/types.h>

#include "preload/stage/lookup.h"

namespace sluice::preload {

// A descriptor that reads the staged copy of `path`, opened as `flags` say; -1: open the original.
// Not a cancellation point.
int open_staged(int folder, const char* path, int flags);

// The attributes of `path` as they were when it was staged. `follow`: of what a symbolic link leads
// to. False: ask the original.
bool stat_staged(int folder, const char* path, bool follow, protocol::StageCopy* copy);

// The caller is about to change what `path` names: descriptors that read its copy read the file
// itself from now on, as they would have all along.
void path_changes(int folder, const char* path);
// The caller gave the file that `path` names another name, which changes its attributes unseen.
void path_linked(int folder, const char* path);
// The caller mounted or unmounted something: copies of what lies below are dropped before this
// returns, for all processes; this one uses none any more, whoever answers.
void mounts_changed();

}  // namespace sluice::preload
