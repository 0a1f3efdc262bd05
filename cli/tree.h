// The regular files of a tree, and reading them into the page cache.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

namespace sluice::cli {

enum class EntryKind { kFile, kFolder };

// Calls `found` for each regular file and folder in the folder. Symbolic links to files count as
// files, those to folders are passed over, so that a cycle ends. Nothing else is ever opened.
// Returns 0, or an errno value.
int list_folder(const std::string& path,
                const std::function<void(const std::string&, EntryKind)>& found);

// Reads the range with blocking calls and discards it: its pages are then cached, as far as the
// file system caches. Returns the bytes read, fewer at the file's end; -1 with errno.
ssize_t read_through(int file, uint64_t offset, uint64_t length);

}  // namespace sluice::cli
