// Switches descriptors that read a staged copy to the original, where the job could observe the
// difference: locks, mappings, /proc, descriptors passed to another process, descriptors that
// outlive their window. Any thread. Opens files, so it may wait for storage as the job itself would
// without Sluice; errno is preserved.
//
// The original is opened first, which may take long. Then new uses of the descriptor and its dups
// are held off, those in progress are waited for, the offset is copied, the original replaces the
// copy behind every number, and uses continue: for other threads the switch is atomic.
#pragma once

#include "preload/stage/opened.h"

namespace sluice::preload {

// Switches `fd` and all its dups in this process, at the same offset. True if `fd` reads no copy
// afterwards. False: the name leads to another file by now, or cannot be opened, or no descriptor
// number is free. Without effect in a vfork child: its descriptors were switched before the vfork.
bool use_original(int fd);
// Switches descriptors that were opened in a window of the calling thread, at the window's end.
void use_originals_of_window();
// Switches the descriptor that a path such as /proc/self/fd/5 names, if any; a relative path starts
// at `folder`, a descriptor or AT_FDCWD.
void use_original_of(int folder, const char* path);
// The same, but `folder` itself if the path is empty, as with AT_EMPTY_PATH.
void use_original_at(int folder, const char* path);
// Switches all descriptors that read the copy of this path, or, if it is a folder, of a path below
// it, since the path is about to change; or of the file (device, inode) under any path.
void use_originals_of(const char* path, size_t length);
void use_originals_of(uint64_t device, uint64_t inode);
// Switches descriptors that a program inherits which is about to be executed.
void use_originals_for_exec();
// Switches all descriptors: a fork's child shares their offsets and locks.
void use_all_originals();
// In a fork's child.
void originals_after_fork();

}  // namespace sluice::preload
