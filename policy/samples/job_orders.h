// Every job's order over datasets: which bytes samples will need next. Pure; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "policy/samples/datasets.h"
#include "policy/samples/file_table.h"
#include "policy/samples/sample_order.h"
#include "policy/samples/wanted.h"
#include "policy/util/ids.h"

namespace sluice::policy {

class JobOrders {
 public:
  struct Job {
    SampleOrder order;
    std::vector<Extent> pending;  // of the sample handed out last, in reverse order
    WantedExtent last;            // of that sample
    uint64_t known = 0;           // known samples of the dataset when the order was last searched
    bool whole_files = false;     // the sample handed out last consists of whole files
    bool of_files = false;        // any sample that was handed out did
    uint64_t files = 1;           // of the sample of whole files that was handed out last
    bool trial = false;           // a trial of the dataset was running at the last call
    uint64_t running = 0;         // the running epoch + 1 at the last call of begin_epochs()
    uint64_t held = 0;            // bytes of the order, included in BookMemory::held
    // Epochs of the session's other orders that have begun while this one's was not being read, the
    // session's taken samples when one did or a sample of this one began, and how many have since.
    unsigned passes = 0;
    uint64_t passed_at = 0, returned = 0;
    bool left = false;  // it seems to be left: its copies have no readers, nothing is handed out
  };
  using Key = std::pair<SessionId, DatasetId>;  // session and dataset
  using Jobs = std::map<Key, Job>;

  // All outlive this.
  JobOrders(const Datasets* datasets, const FileTable* files, BookMemory* memory)
      : datasets_(*datasets), files_(*files), memory_(*memory) {}

  // REQUIRES: the dataset is the session's, and has the samples. False: there is no memory for it.
  // `tentative`: see SampleOrder; ignored where there is no memory for both this order
  // and the one that comes.
  bool publish(SessionId session, DatasetId dataset, uint32_t epoch, uint64_t first,
               std::span<const uint32_t> indices, bool tentative = false);
  void remove(SessionId session, DatasetId dataset);
  void remove_dataset(DatasetId dataset);
  void leave(SessionId session);
  // How often an order was published or discarded.
  uint64_t changes() const { return changes_; }
  // Epochs begin whose orders wait for the end of another that has ended. True: since the last call
  // one began, in whatever way, or one seems to be left, or is read again: other samples are read
  // next from now on.
  bool begin_epochs();
  const Jobs& all() const { return jobs_; }

  // The session's first process was started by a process of `parent`: a spawned worker is a session
  // of its own, without an order, and reads its parent's.
  void set_parent(SessionId session, SessionId parent);
  // The topmost ancestor among the sessions that started this one, or the session itself: the same
  // for all workers and ranks of a job.
  SessionId origin(SessionId session) const;
  // The session whose order this one reads, and its running epoch; nullopt without an order.
  struct Running {
    SessionId session{};
    uint32_t epoch = 0;
  };
  std::optional<Running> running(SessionId session, DatasetId dataset) const;

  // The session reads the dataset in a known order that is not the file's.
  bool is_random(SessionId session, DatasetId dataset) const;
  // A worker of the session, `reader`, reads the sample: it is not fetched any more. 0: a reader
  // that is not known. `at_once`: together with others.
  void take(SessionId session, DatasetId dataset, uint64_t index, uint64_t reader = 0,
            bool at_once = false);

  // The extent to fetch next for the most urgent sample: orders take turns, each at most as many
  // bytes ahead of its readers as `window` returns, or `file_window` where samples are whole files.
  // `judge` decides about each extent.
  using Judge = std::function<FetchVerdict(SessionId session, const Extent&)>;
  struct Ahead {  // the order whose window is requested
    SessionId session{};
    DatasetId dataset{};
    uint64_t spread = 0;      // positions that its workers are apart
    uint64_t beyond = 0;      // files that they need ahead, beside those that keep the storage busy
    uint64_t head_start = 0;  // files that they will read at about the same time, as they all begin
  };
  using Window = std::function<uint64_t(const Ahead&)>;
  // Samples of datasets of which this is true are given in the order's own sequence, although
  // workers read in parallel. Empty: of none.
  std::function<bool(DatasetId)> in_sequence;
  std::optional<WantedExtent> next(const Window& window, const Judge& judge,
                                   const Window& file_window = nullptr);
  // What next() has given of the dataset and that has not begun is given again: it is to be brought
  // in another way.
  void restart(DatasetId dataset);
  // The sample has not begun yet, and is still at the same position of the order.
  bool is_ahead(const WantedExtent& wanted) const;
  // How many whole files the dataset's orders and all others that are being read need
  // ahead together, beside those that keep the storage busy: those of orders whose workers are
  // known, and the most of any other.
  uint64_t beyond(DatasetId dataset) const;
  // Visits the extents of samples that next() has handed out or passed over and that have not begun
  // yet. `judged`: what is done about the extent has been decided. `of_left`: also of orders that
  // seem to be left.
  using Visit = std::function<void(const Extent&, bool judged)>;
  void for_each_ahead(const Visit& visit, bool of_left = true) const;

  // A job reads the dataset in an order that is not the file's, and has not finished.
  bool is_shuffled(DatasetId dataset) const;
  // Whether there is an order, other than the file's, over a dataset of the session of which too
  // few samples are known.
  bool lacks_locations(SessionId session) const;
  // Whole files in the order in which all jobs together will read them, as far as it is known; of
  // more than `most` those that come first, as many of each running epoch. Orders that seem to be
  // left come last, and less of them.
  std::vector<SampleFileId> upcoming_files(size_t most = kMostUpcoming) const;
  // Samples of the dataset, likewise.
  std::vector<uint32_t> upcoming(DatasetId dataset, size_t most = kMostUpcoming) const;
  // A job that makes a dataset for each epoch and leaves the epochs early has orders without number
  // whose rest is never read; a prediction is to hold up the core thread for 0.1 s at most.
  static constexpr size_t kMostUpcoming = 1'000'000;
  // Whole files of the next `samples` samples of each of the session's orders, which take turns.
  std::vector<SampleFileId> next_files(SessionId session, size_t samples) const;
  // How many samples of its running epochs the session has begun to read.
  uint64_t taken(SessionId session) const;

  // During a trial the control group, a half of the samples that looks random in any usual order,
  // is not prefetched.
  static bool is_control(uint32_t index) { return (index * 0x9e3779b1U >> 16 & 1) != 0; }

 private:
  void erase(const std::function<bool(const Key&)>& which);
  using Which = std::function<bool(const Key&, const Job&)>;
  std::vector<const Jobs::value_type*> unfinished(const Which& which) const;
  std::vector<SampleFileId> files(bool left, size_t most) const;
  // The order that the session's reads of the dataset follow; end(): none, or it is ambiguous.
  Jobs::const_iterator job_of(SessionId session, DatasetId dataset) const;
  void pass_by(const Key& begun);
  bool is_left(const Key& key, const Job& job, uint64_t spread) const;
  bool hand_out(const Key& key, Job& job, const Datasets::Dataset& dataset, uint32_t index) const;
  std::optional<WantedExtent> next_of(const Key& key, Job& job, const Window& window,
                                      const Judge& judge, const Window& file_window);

  const Datasets& datasets_;
  const FileTable& files_;
  BookMemory& memory_;
  uint64_t changes_ = 0;
  Jobs jobs_;
  std::map<SessionId, SessionId> parents_;  // by session
  std::map<SessionId, uint64_t> takes_;     // samples that were taken of all its orders
  Key last_turn_;
};

}  // namespace sluice::policy
