// Which pages of mapped files a sample touches, where nothing is protected: they are looked up in
// the process's own page table when the sample ends, and zapped, so that the next sample's pages
// can be distinguished from them. A touch also maps cached pages around it, within 64 KiB
// (fault-around), so the report may exceed what was touched by that much.
//
// Only while the optimizer asks for it (to learn, or to drop what was read), for samples that are
// read one at a time in their process, and for a small share of its time. Only shared mappings: a
// private one may hold written data. Not from a signal handler; errno is preserved.
#pragma once

#include <cstddef>

namespace sluice::preload {

// The calling thread has begun a sample.
void page_watch_begins();
// It is about to end a sample: reports the touched pages as its parts, if it is the thread's only
// one.
void page_watch_ends();
// [address, address + length) is about to be unmapped: records the pages of it that the sample
// touched.
void page_watch_unmaps(const void* address, size_t length);
// In a fork's child: the threads that were in samples do not exist there.
void page_watch_after_fork();

}  // namespace sluice::preload
