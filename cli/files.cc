#include "cli/files.h"

#include <fcntl.h>

#include "protocol/unique_fd.h"

namespace sluice::cli {

std::string read_text(const std::string& path) {
  std::string text;
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  char block[8192];
  for (ssize_t got = 0; file && (got = read(file.get(), block, sizeof block)) > 0;) {
    text.append(block, static_cast<size_t>(got));
  }
  return text;
}

std::string read_word(const std::string& path) {
  const std::string text = read_text(path);
  const size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_first_of(" \t\n", begin) - begin);
}

}  // namespace sluice::cli
