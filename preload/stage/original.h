// Changing descriptors that read a staged copy over to the original, where the difference would
// show: locks, mappings, what /proc says, what another process is given, what outlives its window.
// Any thread. Opens files, so it may wait for storage as the job itself would have; errno is kept.
//
// The original is opened first, which may take long. Then no use of the descriptor and its dups is
// let in, those under way are waited for, the offset is taken, the original is put behind every
// number, and uses go on: to any other thread it happens at one moment.
#pragma once

#include "preload/stage/opened.h"

namespace sluice::preload {

// Changes `fd` and all its dups in this process over, at the same offset. True if `fd` reads no
// copy afterwards. False: the name leads to another file by now, or cannot be opened, or no
// descriptor number is free. In a vfork child nothing happens: its descriptors were changed over
// before it came to be.
bool use_original(int fd);
// Those opened in a window of the calling thread, which ends.
void use_originals_of_window();
// The same for the descriptor that a path such as /proc/self/fd/5 names, if it does; relative ones
// are taken from `folder`, a descriptor or AT_FDCWD.
void use_original_of(int folder, const char* path);
// The same for `folder` itself if the path is empty, as AT_EMPTY_PATH has it.
void use_original_at(int folder, const char* path);
// For all that read the copy of this path or, where it is a folder, of one below it, which is not
// found there afterwards; or of a file that is (device, inode) by any path: it is about to change.
void use_originals_of(const char* path, size_t length);
void use_originals_of(uint64_t device, uint64_t inode);
// Those that a program which is about to be executed inherits.
void use_originals_for_exec();
// All: a fork's child shares them, offset and locks.
void use_all_originals();
// In a fork's child.
void originals_after_fork();

}  // namespace sluice::preload
