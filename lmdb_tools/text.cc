#include <cerrno>
#include <cstdio>
#include <cstring>

#include "lmdb/failure.h"
#include "lmdb/lmdb_format.h"
#include "lmdb_tools/commands.h"
#include "lmdb_tools/source.h"

namespace sluice::lmdb {

std::string printable(std::string_view key) {
  std::string text;
  for (const char c : key) {
    if (c >= ' ' && c <= '~' && c != '\\') {
      text += c;
    } else {
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return text;
}

void check_output() {
  if (fflush(stdout) != 0 || ferror(stdout) != 0) {
    fail("cannot write to standard output: {}", strerror(errno));
  }
}

std::string record_key(uint64_t index, std::string_view name) {
  return fmt::format("{:08}_{}", index, name).substr(0, kMaxKey);
}

void check_key_range(uint64_t records) {
  if (records > 100'000'000) fail("{} records do not fit keys with a number of 8 digits", records);
}

}  // namespace sluice::lmdb
