// Small files of /proc and /sys as text.
#pragma once

#include <string>

namespace sluice::cli {

// The whole file, or "" if it cannot be read.
std::string read_text(const std::string& path);

// Its first word, or "".
std::string read_word(const std::string& path);

}  // namespace sluice::cli
