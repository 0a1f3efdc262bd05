// `sluice packs`: the packs that a cache folder holds (docs/packs.md). Only looks, so that it may
// run beside an optimizer: packs that go meanwhile are as if they had never been there.
#pragma once

#include <string>

namespace sluice::cli {

struct PacksOptions {
  std::string folder;   // the cache folder; "" is SLUICE_CACHE_DIR
  bool remove = false;  // verify: damaged packs
};

// Both print to standard output, complaints to standard error, and return the exit status: 0,
// kExitProblem where a pack is damaged or cannot be read, kExitUsage without a folder.
int verify_packs(const PacksOptions& options);
int print_packs(const PacksOptions& options);

}  // namespace sluice::cli
