// Where samples are, as far as that is not learned by watching: what an earlier run learned
// (io/place_store.h), and what the job says of the records of an LMDB file. Core thread only; files
// are read and written on the executor.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "optimizer/core/files.h"
#include "optimizer/io/executor.h"
#include "optimizer/io/mailbox.h"
#include "policy/samples/file_table.h"
#include "policy/samples/place_list.h"
#include "policy/samples/sample_book.h"

namespace sluice::optimizer {

class PlaceKeeper {
 public:
  // All outlive the keeper. `changed` is called when more is known of some samples.
  PlaceKeeper(SampleBook* samples, FileTable* table, Files* files, Executor* executor,
              std::shared_ptr<Mailbox> mailbox, std::function<void()> changed);
  PlaceKeeper(const PlaceKeeper&) = delete;
  PlaceKeeper& operator=(const PlaceKeeper&) = delete;

  // A session uses the dataset; `folder` is where places are kept, empty: nowhere. What is kept of
  // it is looked for once.
  void use(uint32_t dataset, const std::string& folder, const std::string& name, uint64_t samples);
  // The file can be read now: samples of earlier runs may lie in it.
  void file_ready(const FileEntry& file);
  // The session is about to leave: keeps what was learned of datasets that leave with it.
  void leave(uint32_t session);
  // The same of one dataset that is about to be given up.
  void let_go(uint32_t dataset);

  size_t unsettled() const { return saving_; }  // files being written

 private:
  struct Dataset {
    std::string folder, name;
    uint64_t samples = 0;
    PlaceList kept;  // what waits for a file of it to be followed; parts may be empty
  };

  void loaded(uint32_t dataset, PlaceList places);
  void settle(uint32_t dataset);
  const FileEntry* followed(const PlaceList::File& file) const;
  static void keep_waiting(const PlaceList& kept, const SampleSet& set, PlaceList* list);
  PlaceList learned(const Dataset& dataset, const SampleSet& set) const;

  SampleBook* const samples_;
  FileTable* const table_;
  Files* const files_;
  Executor* const executor_;
  const std::shared_ptr<Mailbox> mailbox_;
  const std::function<void()> changed_;
  std::map<uint32_t, Dataset> datasets_;
  std::map<uint32_t, PlaceList::File> seen_files_;  // by id: what was followed
  size_t saving_ = 0;
};

}  // namespace sluice::optimizer
