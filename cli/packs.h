// `sluice packs`: the packs in a cache folder (docs/packs.md). Read-only without `remove`, so that
// it may run beside an optimizer: packs that are removed meanwhile are ignored.
#pragma once

#include <string>

namespace sluice::cli {

struct PacksOptions {
  std::string folder;   // the cache folder; "": SLUICE_CACHE_DIR
  bool remove = false;  // verify: remove damaged packs
};

// Both print to standard output, errors to standard error, and return the exit status: 0,
// kExitProblem if a pack is damaged or cannot be read, kExitUsage without a folder.
int verify_packs(const PacksOptions& options);
int print_packs(const PacksOptions& options);

}  // namespace sluice::cli
