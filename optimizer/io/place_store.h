// The folder that stores learned locations from run to run: one file per dataset
// (policy/samples/place_list.h). Everything here may block in the file system: run it on the
// executor. Several optimizers may use one folder: files are replaced atomically.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "policy/samples/place_list.h"

namespace sluice::optimizer {

struct PlaceStore {
  std::string folder;
  uint64_t most_bytes = 1ULL << 30;  // of all files together; the oldest are removed

  // The stored locations of the dataset, or nullopt. *problem is one line if a file exists but
  // cannot be used; a damaged file is removed.
  std::optional<policy::PlaceList> load(const std::string& name, uint64_t samples,
                                        std::string* problem) const;
  // False, and *problem is one line: the folder cannot be made or written, or the disk is full. The
  // file stored before is then unchanged.
  bool save(const policy::PlaceList& places, std::string* problem) const;

 private:
  bool make_folder(std::string* problem) const;
  void prune() const;
};

}  // namespace sluice::optimizer
