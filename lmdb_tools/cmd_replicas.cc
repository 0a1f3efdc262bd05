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

struct Options {
  std::string path, out;
  unsigned count = 0;
};

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

void replicas(const Options& options) {
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

}  // namespace

void add_replicas(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "replicas", "A folder for each process, with a lock file of its own and the shared data");
  command->footer(
      "Makes OUT/0, OUT/1, ..., each with a lock file and a link to data.mdb, so that readers do\n"
      "not contend for one lock file on a parallel file system. For reading only: a writer would\n"
      "not see the readers of other folders, and destroy what they read. OUT must not exist.");
  command->add_option("--count", options->count, "number of processes")
      ->required()
      ->type_name("N")
      ->check(CLI::Range(1U, 100'000U));
  add_database(command, &options->path);
  command->add_option("out", options->out, "folder to make")->required()->type_name("OUT");
  command->callback([options] { replicas(*options); });
}

}  // namespace sluice::lmdb
