// All datasets, what is being learned about them, and every job's order over them: which bytes
// samples will need next. Pure; one thread.
//
// A dataset has one id for all sessions: a job's workers may be sessions of their own, and two jobs
// over the same data share what is learned.
//
// Memory is bounded: all tables and orders together take at most set_most_bytes(), and at most
// kMaxDatasets datasets (kMaxOfSession of one session) hold anything. A dataset that is evicted
// keeps its id and is learned anew from the next message about it, except one that does not fit
// even alone: that one is not followed any more.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "policy/samples/file_table.h"
#include "policy/samples/sample_order.h"
#include "policy/samples/sample_set.h"
#include "policy/samples/wanted.h"

namespace sluice::optimizer {

class SampleBook {
 public:
  // `files` knows the sizes of whole files; it outlives the book. Without: no sample is of such.
  explicit SampleBook(const FileTable* files) : files_(files) {}
  SampleBook();

  // The dataset of that name and size, new or known. The session uses it until it leaves; what was
  // learned is stored as long as any session uses it, or until it is evicted. Beyond kMaxNames,
  // some of the least recently used datasets of the session that has the most are removed.
  uint32_t use(uint32_t session, const std::string& name, uint64_t samples);
  void leave(uint32_t session);

  // Bytes that all tables and orders may take. Beyond them nothing is learned, no order accepted.
  void set_most_bytes(uint64_t bytes) { most_bytes_ = bytes; }
  uint64_t most_bytes() const { return most_bytes_; }
  uint64_t held() const { return held_; }  // bytes
  // The dataset to evict so that there is room for `more` bytes; nullopt: there is room, or nothing
  // can be evicted. Datasets without an unfinished order come first, of those the least recently
  // used.
  struct Surplus {
    uint32_t dataset = 0;
    bool for_good = false;  // it does not fit: it is not followed any more
  };
  std::optional<Surplus> surplus(uint64_t more = 0) const;
  void touch(uint32_t dataset);  // the dataset is in use
  // Discards what was learned about the dataset, and all orders over it.
  void release(const Surplus& surplus);

  // False: no such dataset, not the session's, or an index that it does not have.
  bool publish(uint32_t session, uint32_t dataset, uint32_t epoch, uint64_t first,
               std::span<const uint32_t> indices);

  // Discards the session's order.
  void forget_order(uint32_t session, uint32_t dataset);
  // How often an order was published or discarded.
  uint64_t changes() const { return changes_; }
  // Whether, for each sample of all datasets of the session, its parts were seen in this run or
  // declared by the job, and `test` is true of them. False without a dataset.
  bool all_samples(uint32_t session,
                   const std::function<bool(std::span<const Extent>)>& test) const;

  // Whether there is an order, other than the file's, over a dataset of the session of which too
  // few samples are known.
  bool wants_places(uint32_t session) const;

  // A session reports that the sample consists of `parts`. False: no such sample, or a dataset that
  // is not the session's.
  bool locate(uint32_t session, uint32_t dataset, uint64_t index, std::vector<Extent> parts,
              Source source);
  // The same on behalf of all sessions. No effect if there is no such dataset.
  void learn(uint32_t dataset, uint64_t index, std::vector<Extent> parts, Source source);
  void refine(uint32_t dataset, uint64_t index, std::vector<Extent> parts);  // as SampleSet's
  void forget_guesses(uint32_t dataset);
  // What is known of a dataset; null: no such dataset. Valid until a session leaves.
  const SampleSet* set(uint32_t dataset) const;
  bool uses(uint32_t session, uint32_t dataset) const {
    return sessions_of(dataset).count(session) != 0;
  }
  const std::set<uint32_t>& sessions_of(uint32_t dataset) const;
  // Datasets that only this session uses: they are removed when it leaves.
  std::vector<uint32_t> only_of(uint32_t session) const;

  // A thread (`reader`) begins and ends a sample; part() adds what it reads in between. begin()
  // returns what is known of the sample. False from end(): it had not begun.
  std::span<const Extent> begin(uint32_t session, uint64_t reader, uint32_t dataset,
                                uint64_t index);
  void part(uint64_t reader, uint32_t dataset, uint64_t index, const Extent& extent);
  bool end(uint64_t reader, uint32_t dataset, uint64_t index);
  // What is known of a sample; empty: nothing.
  std::span<const Extent> parts(uint32_t dataset, uint64_t index) const;
  void forget_process(uint32_t pid);
  // The reader is in a sample of a known order that is not the file's: its reads are no stream.
  bool reads_at_random(uint64_t reader) const;

  // A job reads the dataset in an order that is not the file's, and has not finished.
  bool is_shuffled(uint32_t dataset) const;

  // The session's first process was started by a process of `parent`: a spawned worker is a session
  // of its own, without an order, and reads its parent's.
  void set_parent(uint32_t session, uint32_t parent);
  bool has_parent(uint32_t session) const { return parents_.count(session) != 0; }

  // The topmost ancestor among the sessions that started this one, or the session itself: the same
  // for all workers and ranks of a job.
  uint32_t origin(uint32_t session) const;

  // The session whose order this one reads, and its running epoch; nullopt without an order.
  struct Running {
    uint32_t session = 0, epoch = 0;
  };
  std::optional<Running> running(uint32_t session, uint32_t dataset) const;

  // The extent to fetch next for the most urgent sample: orders take turns, each at most as many
  // bytes ahead of its readers as `window` returns, or `file_window` for the order's spread where
  // samples are whole files. `judge` decides about each extent.
  using Judge = std::function<FetchVerdict(uint32_t session, const Extent&)>;
  struct Ahead {  // the order whose window is requested; `spread` is the order's
    uint32_t session = 0, dataset = 0;
    uint64_t spread = 0;
  };
  using Window = std::function<uint64_t(const Ahead&)>;
  using FileWindow = std::function<uint64_t(uint64_t spread)>;
  std::optional<WantedExtent> next(const Window& window, const Judge& judge,
                                   const FileWindow& file_window = nullptr);

  // Disables prefetching for the dataset's samples that are whole files (or, not `files`, ranges).
  void set_off(uint32_t dataset, bool files, bool off) {
    const auto at = datasets_.find(dataset);
    if (at != datasets_.end()) at->second.off[files ? 1 : 0] = off;
  }

  // During a trial the control group, a half of the samples that looks random in any usual order,
  // is not prefetched.
  static bool is_control(uint32_t index) { return (index * 0x9e3779b1U >> 16 & 1) != 0; }
  void set_trial(uint32_t dataset, bool files, bool trial) {
    const auto at = datasets_.find(dataset);
    if (at != datasets_.end()) at->second.trial[files ? 1 : 0] = trial;
  }

  // The sample has not begun yet, and is still at the same position of the order.
  bool is_ahead(const WantedExtent& wanted) const;

  // Visits the extents of samples that next() has handed out or passed over and that have not begun
  // yet, and the known extents of samples that are being read.
  void for_each_ahead(const std::function<void(const Extent&)>& visit) const;

  // Whole files in the order in which all jobs together will read them, as far as it is known.
  std::vector<uint32_t> upcoming_files() const;
  // Samples of the dataset, likewise.
  std::vector<uint32_t> upcoming(uint32_t dataset) const;

  // The dataset, the session whose order this session's reads follow (0: none), and that order's
  // running epoch. `name` is valid until a session leaves. nullopt: no such dataset.
  struct Following {
    std::string_view name;
    uint64_t samples = 0;
    uint32_t session = 0, epoch = 0;
  };
  std::optional<Following> following(uint32_t session, uint32_t dataset) const;

  struct View {
    uint32_t dataset = 0, session = 0, epoch = 0;
    std::string name;
    uint64_t samples = 0, known = 0, order = 0, taken = 0, ahead_bytes = 0;
  };
  std::vector<View> views() const;

  static constexpr size_t kMaxDatasets = 256;   // that hold anything
  static constexpr size_t kMaxOfSession = 128;  // of one session
  static constexpr size_t kMaxNames = 4096;     // datasets, holding anything or not
  static constexpr uint32_t kMaxId = (1U << 24) - 1;
  static constexpr size_t kMaxReaders = 4096;
  static constexpr size_t kMaxOpen = 4096;         // samples that one reader has begun at a time
  static constexpr size_t kMaxOpenAll = 1 << 16;   // likewise, of all readers of one session
  static constexpr size_t kMaxPartsAll = 1 << 20;  // their observed parts that are not joined yet

 private:
  struct Dataset {
    Dataset(std::string text, uint64_t samples) : name(std::move(text)), set(samples) {}
    std::string name;
    SampleSet set;
    std::set<uint32_t> sessions;
    uint64_t last_use = 0;           // uses_ at the last use
    bool unfollowed = false;         // it does not fit
    bool off[2] = {false, false};    // see set_off()
    bool trial[2] = {false, false};  // see set_trial()
  };
  struct Open {
    uint32_t session = 0, dataset = 0;
    uint64_t index = 0;
    bool random = false;
    std::vector<Extent> parts;
  };
  struct Job {
    SampleOrder order;
    std::vector<Extent> pending;  // of the sample handed out last, in reverse order
    WantedExtent last;            // of that sample
    uint64_t known = 0;           // known samples of the dataset when the order was last searched
    bool whole_files = false;     // the sample handed out last consists of whole files
    uint64_t held = 0;            // bytes of the order, included in held_
  };
  struct Opened {  // by one session
    size_t samples = 0, parts = 0;
  };

  // nullptr: no such dataset, not the session's, or it is not followed.
  Dataset* followed(uint32_t session, uint32_t dataset);
  void learn_in(Dataset& dataset, uint64_t index, std::vector<Extent> parts, Source source);
  void clear(Dataset& dataset);
  void erase_jobs(const std::function<bool(const std::pair<uint32_t, uint32_t>&)>& which);
  uint32_t new_id();
  void drop_names();
  void forget_open(const std::function<bool(uint64_t reader, const Open&)>& which);
  Open* find_open(uint64_t reader, uint32_t dataset, uint64_t index);
  using Jobs = std::map<std::pair<uint32_t, uint32_t>, Job>;
  // The order that the session's reads of the dataset follow; end(): none, or it is ambiguous.
  Jobs::const_iterator job_of(uint32_t session, uint32_t dataset) const;
  Job* job_for(uint32_t session, uint32_t dataset);
  std::optional<WantedExtent> next_of(const std::pair<uint32_t, uint32_t>& whose,
                                      const Dataset& dataset, Job& job, const Window& window,
                                      const Judge& judge, const FileWindow& file_window);

  const FileTable* files_;
  uint32_t next_id_ = 1;
  uint64_t changes_ = 0;
  uint64_t uses_ = 0;
  uint64_t held_ = 0, most_bytes_ = uint64_t{512} << 20;
  // Whether a dataset may hold something that held nothing at the last call of surplus().
  mutable bool more_holders_ = false;
  bool refused_ = false;  // a sample was not learned for lack of room, since release()
  std::map<uint32_t, Dataset> datasets_;
  std::map<std::pair<std::string, uint64_t>, uint32_t> by_name_;  // and size
  std::map<uint32_t, Opened> opened_;                             // by session
  Jobs jobs_;                                                     // by session and dataset
  std::map<uint32_t, uint32_t> parents_;                          // by session
  std::pair<uint32_t, uint32_t> last_served_;
  std::unordered_map<uint64_t, std::vector<Open>> open_;  // by reader
};

}  // namespace sluice::optimizer
