#include <lmdb.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "lmdb/failure.h"
#include "lmdb/tree_walk.h"
#include "lmdb_tools/commands.h"
#include "lmdb_tools/partial.h"

namespace sluice::lmdb {
namespace {

namespace fs = std::filesystem;

// liblmdb creates the lock file when it opens the database, and leaves it when it closes.
void make_lock(const std::string& folder) {
  MDB_env* opened = nullptr;
  int error = mdb_env_create(&opened);
  const std::unique_ptr<MDB_env, decltype(&mdb_env_close)> env(opened, &mdb_env_close);
  if (error == MDB_SUCCESS) error = mdb_env_open(opened, folder.c_str(), MDB_RDONLY, 0666);
  if (error != MDB_SUCCESS) fail("cannot open {}: {}", folder, mdb_strerror(error));
}

void make_replica(const std::string& folder, const std::string& data) {
  if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) {
    fail("cannot make {}: {}", folder, strerror(errno));
  }
  const std::string link = folder + "/data.mdb";
  if (symlink(data.c_str(), link.c_str()) != 0 && errno != EEXIST) {
    fail("cannot make {}: {}", link, strerror(errno));
  }
  make_lock(folder);
}

}  // namespace

void replicas(const ReplicasOptions& options) {
  const Database database(options.path);
  // Checked before liblmdb maps the file, see database.h.
  for_each_record(database, [](const Record&) {});
  const std::string data = fs::canonical(database.path());
  Partial partial(options.out, fmt::format("sluice-lmdb replicas\n{}\n{}\n", data, options.count));
  for (unsigned i = 0; i < options.count; ++i) {
    make_replica(fmt::format("{}/{}", partial.result(), i), data);
  }
  partial.publish();
  fmt::print("{}: {} folders, 0 to {}, that share {}\n", options.out, options.count,
             options.count - 1, data);
  check_output();
}

}  // namespace sluice::lmdb
