// Which pages of mapped files a sample touches, where nothing is protected: looked up in the
// process's own page table when the sample ends, and taken out of it, so that the next sample's are
// told from them. A touch maps what lies around it in the page cache too, within 64 KiB: what is
// told is at most that much more than was touched.
//
// Only while the optimizer asks for it (to learn, or to drop what was read), for samples that are
// read one at a time in their process, and for a small share of its time. Shared mappings alone: a
// private one may hold what was written. Not from a signal handler; errno is kept.
#pragma once

#include <cstddef>

namespace sluice::preload {

// The calling thread has begun a sample.
void page_watch_begins();
// It is about to end one: what was touched is told as parts of the sample, if it is its only one.
void page_watch_ends();
// [address, address + length) is about to be unmapped: what the sample touched of it is told now.
void page_watch_unmaps(const void* address, size_t length);
// In a fork's child: the threads that were in samples are not there.
void page_watch_after_fork();

}  // namespace sluice::preload
