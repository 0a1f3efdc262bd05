// What hooks ask of the stage: a copy to open instead of a file, its attributes, and to be told of
// changes. Without a stage each costs one look at a pointer. errno is kept.
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
// The caller changed it: once this returns no copy that is opened holds what was there before. One
// message if anything is staged.
void path_changed(int folder, const char* path);
// The same of the file behind `fd`.
void fd_changed(int fd);
// The caller opened `fd` for writing: this process takes no copy of that file any more, since
// nobody tells what it writes when.
void opened_for_writing(int fd, int folder, const char* path);

}  // namespace sluice::preload
