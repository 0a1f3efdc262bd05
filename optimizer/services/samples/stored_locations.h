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
  void use(policy::DatasetId dataset, const std::string& folder, const std::string& name,
           uint64_t samples);
  // The file can be read now: locations from earlier runs may be in it.
  void file_ready(const FileEntry& file);
  // The session is about to end: stores what was learned of datasets that no other session uses.
  void leave(policy::SessionId session);
  // The same for one dataset that is about to be released.
  void release(policy::DatasetId dataset);

  size_t unsettled() const { return saving_; }  // files still being written

 private:
  struct Dataset {
    std::string folder, name;
    uint64_t samples = 0;
    policy::PlaceList pending;  // loaded parts whose file is not followed yet; may have none
  };

  void loaded(policy::DatasetId dataset, policy::PlaceList places);
  void settle(policy::DatasetId dataset);
  const FileEntry* followed(const policy::PlaceList::File& file) const;
  static void add_pending(const policy::PlaceList& pending, const policy::SampleSet& set,
                          policy::PlaceList* list);
  policy::PlaceList learned(const Dataset& dataset, const policy::SampleSet& set) const;

  std::map<policy::DatasetId, Dataset> datasets_;
  std::map<policy::FileId, policy::PlaceList::File> seen_files_;  // files that were ever followed
  size_t saving_ = 0;
};

}  // namespace sluice::optimizer
