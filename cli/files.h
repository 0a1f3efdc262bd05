// Files as text: small ones of /proc and /sys, and others as a whole.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "protocol/unique_fd.h"

namespace sluice::cli {

// The whole file, or "" if it cannot be read.
std::string read_text(const std::string& path);

// Its first word, or "".
std::string read_word(const std::string& path);

// A regular file, opened to be read, and its size; none, and the problem, for others. Does not wait
// for the writer of a FIFO.
UniqueFd open_regular(const std::string& path, off_t* size, std::string* problem);

// Reads `bytes`, or all up to the file's end. Returns how many, or -1 with errno.
ssize_t read_fully(int fd, void* to, size_t bytes);
// False with errno, if not all could be written.
bool write_fully(int fd, std::string_view text);

// Writes `text` under a temporary name beside `path` and renames it, so that readers find the old
// file or the new one, never a part. Returns "" or the problem.
std::string replace_file(const std::string& path, std::string_view text);

}  // namespace sluice::cli
