// Stores the learned locations of samples for later runs, and loads those that an earlier run
// learned (optimizer/io/place_store.h). Core thread only; files are accessed on the executor.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "optimizer/services/service.h"
#include "policy/samples/place_list.h"
#include "policy/util/ids.h"

namespace sluice::optimizer {

class StoredLocations : Service {
 public:
  explicit StoredLocations(const Service& service) : Service(service) {}
  StoredLocations(const StoredLocations&) = delete;
  StoredLocations& operator=(const StoredLocations&) = delete;

  // A session uses the dataset; locations are stored in `folder` (empty: not stored). Those stored
  // earlier are loaded once.
  void use(DatasetId dataset, const std::string& folder, const std::string& name, uint64_t samples);
  // The file can be read now: locations from earlier runs may be in it.
  void file_ready(const FileEntry& file);
  // The session is about to end: stores what was learned of datasets that no other session uses.
  void leave(SessionId session);
  // The same for one dataset that is about to be released.
  void release(DatasetId dataset);

  size_t unsettled() const { return saving_; }  // files still being written

 private:
  struct Dataset {
    std::string folder, name;
    uint64_t samples = 0;
    PlaceList pending;  // loaded parts whose file is not followed yet; may have none
  };

  void loaded(DatasetId dataset, PlaceList places);
  void settle(DatasetId dataset);
  const FileEntry* followed(const PlaceList::File& file) const;
  static void add_pending(const PlaceList& pending, const SampleSet& set, PlaceList* list);
  PlaceList learned(const Dataset& dataset, const SampleSet& set) const;

  std::map<DatasetId, Dataset> datasets_;
  std::map<FileId, PlaceList::File> seen_files_;  // files that were ever followed
  size_t saving_ = 0;
};

}  // namespace sluice::optimizer
