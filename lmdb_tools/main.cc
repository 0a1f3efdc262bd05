// sluice-lmdb: makes, inspects and prepares LMDB data sets for training.

#include <cstdio>
#include <exception>
#include <new>

#include "lmdb/failure.h"
#include "lmdb_tools/commands.h"
#include "protocol/program_version.h"

namespace sluice::lmdb {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

int run(int argc, char** argv) {
  CLI::App app("Makes, inspects and prepares LMDB data sets for training", "sluice-lmdb");
  app.set_version_flag("--version", fmt::format("sluice-lmdb {}", protocol::kProgramVersion));
  app.require_subcommand(1);
  add_make(app);
  add_stat(app);
  add_layout(app);
  add_verify(app);
  add_ranges(app);
  add_replicas(app);
  add_reorder(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked_for_help) {
    return app.exit(asked_for_help);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "sluice-lmdb: {} (see --help)\n", error.what());
    return kUsage;
  }
  return 0;
}

}  // namespace
}  // namespace sluice::lmdb

int main(int argc, char** argv) {
  try {
    return sluice::lmdb::run(argc, argv);
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "sluice-lmdb: out of memory\n");
  } catch (const std::exception& failure) {
    fmt::print(stderr, "sluice-lmdb: {}\n", failure.what());
  }
  return sluice::lmdb::kFailed;
}
