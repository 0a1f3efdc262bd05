// Real data.mdb files for tests, written with liblmdb.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::test {

using Pairs = std::vector<std::pair<std::string, std::string>>;  // keys and values

// `bytes` bytes that hardly occur anywhere else.
std::string value_for(std::string_view key, size_t bytes);

// A file in a folder of its own; both are removed with it. Tests fail if liblmdb does.
class LmdbFile {
 public:
  // `flags` and `name` are mdb_dbi_open's; without a name the main database is filled.
  explicit LmdbFile(const Pairs& records, unsigned flags = 0, const char* name = nullptr);
  LmdbFile(const LmdbFile&) = delete;
  LmdbFile& operator=(const LmdbFile&) = delete;
  ~LmdbFile();

  const std::string& path() const { return path_; }
  // One more transaction. An empty value removes the key if `remove` is set.
  void write(const Pairs& records, bool remove = false) const;

 private:
  std::string folder_, path_;
  unsigned flags_;
  const char* name_;
};

std::string contents(const std::string& path);
void set_contents(const std::string& path, std::string_view bytes);

}  // namespace sluice::test
