// Locates samples that are records of a file before they are read: by LMDB keys that the job
// declared, or by a rule guessed from samples already read (policy/samples/sample_guess.h). Core
// thread only; files are read, and records searched, on the executor.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "optimizer/io/lmdb_records.h"
#include "optimizer/services/service.h"
#include "policy/samples/record_list.h"
#include "policy/samples/sample_guess.h"
#include "policy/util/ids.h"

namespace sluice::optimizer {

class RecordLocator : Service {
 public:
  explicit RecordLocator(const Service& service) : Service(service) {}
  RecordLocator(const RecordLocator&) = delete;
  RecordLocator& operator=(const RecordLocator&) = delete;
  // Stops work under way.
  ~RecordLocator() { stop_all(); }

  // Samples [first, first + keys.size()) are the records with these keys; an empty key is unknown.
  // False: too many keys wait for their file already (kMostDeclaredBytes).
  bool declared(policy::DatasetId dataset, policy::FileId file, uint64_t first,
                const std::vector<std::string_view>& keys);
  // What was learned of the dataset was released (SampleBook::release).
  void remove(policy::DatasetId dataset) { datasets_.erase(dataset); }
  void file_ready(const FileEntry& file);
  // A worker has read the sample, and its location is learned.
  void seen(policy::DatasetId dataset, uint64_t index);
  // Discards what the job declared of the dataset's samples, if they are read from elsewhere.
  void doubt(policy::DatasetId dataset);
  // A session has ended: removes its datasets that no other session uses, and stops executor work
  // on its files that no other session follows, so that their mount can be unmounted.
  void session_ended();
  // The optimizer is ending: stops work on all files, and later work before it begins.
  void stop_all();
  // Sets the memory budget, in bytes, from which limits() derives those of a search.
  void set_budget(uint64_t bytes) { budget_ = bytes; }

 private:
  struct Dataset {
    uint64_t seen = 0;      // samples read so far
    uint64_t next_try = 0;  // value of `seen` at which to try a guess
    bool trying = false;
    std::optional<policy::SampleGuess> guess;  // in use
    std::shared_ptr<const policy::RecordList>
        records;  // of `file`; held while guessing is undecided
    policy::FileId file{};
    policy::FileId waits_for{};  // a file that is being opened
  };
  struct Declared {
    policy::DatasetId dataset{};
    policy::FileId file{};
    uint64_t first = 0;
    std::vector<std::string> keys;
    uint64_t bytes() const;  // of memory, approximately
  };
  struct Found;
  struct Guessed;

  // Executor work that reads a file; once `stop` is set it ends between two read calls.
  using Stop = std::shared_ptr<std::atomic<bool>>;
  struct Reading {
    Stop stop;
    unsigned count = 0;
  };

  // Reads the file as far as a guess needs it. Any thread.
  static void guess(int fd, const std::atomic<bool>& stop, const Guessed& known,
                    const std::vector<policy::Observation>& observed, Found* found);
  void try_guess(policy::DatasetId id, Dataset& dataset);
  void guessed(policy::DatasetId id, policy::FileId file, Found found);
  void apply_guess(policy::DatasetId id, uint64_t first);
  void look_up(const FileEntry& file);
  // Runs `work` on the executor with the file, which stays open, then `done` on the core thread.
  void with_file(const FileEntry& file,
                 std::function<void(int fd, const std::atomic<bool>& stop)> work,
                 std::function<void()> done);
  LmdbLimits limits() const;

  bool stopped_ = false;
  uint64_t budget_ = 0;
  std::map<policy::FileId, Reading> reading_;
  std::map<policy::DatasetId, Dataset> datasets_;
  std::list<Declared> waiting_;        // for their file to be ready, or a look-up in it to end
  std::set<policy::FileId> searched_;  // in which keys are being looked up
};

}  // namespace sluice::optimizer
