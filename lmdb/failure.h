// The error of sluice-lmdb for everything that a user, a file or a disk can get wrong: main prints
// the text as one line and exits with status 1. The optimizer, which uses the reader of data.mdb as
// well, continues without the file's index.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace sluice::lmdb {

class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws a Failure. The text is one line that names the file, without a full stop.
template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Failure(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace sluice::lmdb
