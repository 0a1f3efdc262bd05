#include "tests/unit/lmdb_files.h"

#include <gtest/gtest.h>
#include <lmdb.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

namespace sluice::test {
namespace {

constexpr size_t kMapBytes = 1 << 30;

void good(int result, const char* what) {
  ASSERT_EQ(result, 0) << what << ": " << mdb_strerror(result);
}

}  // namespace

std::string value_for(std::string_view key, size_t bytes) {
  std::mt19937_64 draw(std::hash<std::string_view>{}(key));
  std::string value(bytes, '\0');
  for (char& byte : value) byte = static_cast<char>(draw());
  return value;
}

LmdbFile::LmdbFile(const Pairs& records, unsigned flags, const char* name)
    : flags_(flags), name_(name) {
  folder_ = (std::filesystem::temp_directory_path() / "sluice-lmdb-XXXXXX").string();
  EXPECT_NE(mkdtemp(folder_.data()), nullptr);
  path_ = folder_ + "/data.mdb";
  write(records);
}

LmdbFile::~LmdbFile() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void LmdbFile::write(const Pairs& records, bool remove) const {
  MDB_env* environment = nullptr;
  MDB_txn* transaction = nullptr;
  MDB_dbi database = 0;
  good(mdb_env_create(&environment), "mdb_env_create");
  good(mdb_env_set_mapsize(environment, kMapBytes), "mdb_env_set_mapsize");
  good(mdb_env_set_maxdbs(environment, 4), "mdb_env_set_maxdbs");
  good(mdb_env_open(environment, folder_.c_str(), MDB_NOLOCK | MDB_NOSYNC, 0600), "mdb_env_open");
  good(mdb_txn_begin(environment, nullptr, 0, &transaction), "mdb_txn_begin");
  good(mdb_dbi_open(transaction, name_, flags_ | MDB_CREATE, &database), "mdb_dbi_open");
  for (const auto& [key, value] : records) {
    MDB_val at{key.size(), const_cast<char*>(key.data())};
    MDB_val what{value.size(), const_cast<char*>(value.data())};
    if (remove && value.empty()) {
      good(mdb_del(transaction, database, &at, nullptr), "mdb_del");
    } else {
      good(mdb_put(transaction, database, &at, &what, 0), "mdb_put");
    }
  }
  good(mdb_txn_commit(transaction), "mdb_txn_commit");
  mdb_env_close(environment);
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void set_contents(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  EXPECT_TRUE(file.good()) << path;
}

}  // namespace sluice::test
