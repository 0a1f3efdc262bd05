// The folder in which what was learned of datasets is kept from run to run: one file a dataset
// (samples/place_list.h). Everything here may block in the file system: run it on the executor.
// Several optimizers may use one folder: a file is there as a whole or not at all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "policy/samples/place_list.h"

namespace sluice::optimizer {

struct PlaceStore {
  std::string folder;
  uint64_t most_bytes = 1ULL << 30;  // of all files together; the oldest make way

  // What is kept of the dataset; nullopt if that is nothing. *problem, one line, if there is a file
  // that cannot be used; it is removed where it is damaged.
  std::optional<PlaceList> load(const std::string& name, uint64_t samples,
                                std::string* problem) const;
  // False, and *problem one line: the folder cannot be made or written, or the disk is full. What
  // was kept before is as it was then.
  bool save(const PlaceList& places, std::string* problem) const;

 private:
  bool make_folder(std::string* problem) const;
  void prune() const;
};

}  // namespace sluice::optimizer
