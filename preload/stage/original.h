// Putting the original behind descriptors that read a staged copy, where the difference would show:
// locks, what /proc says, what another process inherits. Any thread. Opens files, so it may wait
// for storage as the job itself would have; errno is kept.
#pragma once

#include "preload/stage/opened.h"

namespace sluice::preload {

// Puts the original behind `fd` and all its copies in this process, at the same offset. Without
// effect if it reads no copy, or if the original is not that file any more. In a vfork child the
// child's own descriptor alone: the memory is its parent's.
void use_original(int fd);
// The same for the descriptor that a path such as /proc/self/fd/5 names, if it does; relative ones
// are taken from `folder`, a descriptor or AT_FDCWD.
void use_original_of(int folder, const char* path);
// The same for `folder` itself if the path is empty, as AT_EMPTY_PATH has it.
void use_original_at(int folder, const char* path);
// For all that read the copy of this path, or of a file that is (device, inode) by any path: the
// file is about to change.
void use_originals_of(const char* path, size_t length);
void use_originals_of(uint64_t device, uint64_t inode);
// Those that a program which is about to be executed inherits.
void use_originals_for_exec();
// All: a fork's child shares them, offset and locks.
void use_all_originals();

}  // namespace sluice::preload
