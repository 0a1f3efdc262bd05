// All datasets, what is being learned of them, and every job's order over them: which bytes samples
// will need next. Pure; one thread.
//
// A dataset has one id for all sessions: a job's workers may be sessions of their own, and two jobs
// over the same data learn for each other.
//
// Memory is bounded: all tables and orders together take at most set_most_bytes(), and at most
// kMaxDatasets of them (kMaxOfSession of one session) hold anything. A dataset that gives way
// keeps its id and starts again with the next that is said of it, but for one that alone does not
// fit: that is not followed any more.
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

namespace sluice::optimizer {

// Something to have in the page cache, for a session's sample.
struct WantedExtent {
  Extent extent;
  uint32_t session = 0, dataset = 0;
  uint32_t epoch = 0, sample = 0;
  uint64_t position = 0;  // of the sample in the epoch
  uint64_t order = 0;     // samples of the epoch
};

class SampleBook {
 public:
  // `files`, which may be null, knows how long whole files are; it outlives the book.
  explicit SampleBook(const FileTable* files = nullptr) : files_(files) {}

  // The dataset of that name and size, new or known. The session uses it until it leaves; what was
  // learned stays for as long as anybody does, or until it gives way. Of more than kMaxNames some
  // of the least recently used, of the session that has the most, are no datasets any more.
  uint32_t use(uint32_t session, const std::string& name, uint64_t samples);
  void leave(uint32_t session);

  // Bytes that all tables and orders may take. Beyond them nothing is learned and no order taken.
  void set_most_bytes(uint64_t bytes) { most_bytes_ = bytes; }
  uint64_t most_bytes() const { return most_bytes_; }
  uint64_t held() const { return held_; }  // bytes
  // Which dataset is to give way, so that there is room for `more` bytes; nullopt: there is, or
  // nothing is left that could. Those without an unfinished order first, the least recently used
  // of them.
  struct Surplus {
    uint32_t dataset = 0;
    bool for_good = false;  // it does not fit: it is not to be followed any more
  };
  std::optional<Surplus> surplus(uint64_t more = 0) const;
  void touch(uint32_t dataset);  // it is in use
  // What was learned of the dataset, and all orders over it, are forgotten.
  void release(const Surplus& surplus);

  // False: no such dataset, not the session's, or a sample that it does not have.
  bool publish(uint32_t session, uint32_t dataset, uint32_t epoch, uint64_t first,
               std::span<const uint32_t> indices);

  // What was told of the session's order is forgotten.
  void forget_order(uint32_t session, uint32_t dataset);
  // How often an order was told or forgotten.
  uint64_t changes() const { return changes_; }
  // Whether it was seen in this run, or told, of all samples of all datasets of the session what
  // they are made of, and `test` is true of that. False without a dataset.
  bool all_samples(uint32_t session,
                   const std::function<bool(std::span<const Extent>)>& test) const;

  // Whether some order that is not the file's is of samples of which too little is known, and the
  // session reads them.
  bool wants_places(uint32_t session) const;

  // The sample consists of `parts`, a session says. False: no such sample, or a dataset that is not
  // the session's.
  bool locate(uint32_t session, uint32_t dataset, uint64_t index, std::vector<Extent> parts,
              Source source);
  // The same for who serves all sessions. Nothing happens if there is no such dataset.
  void learn(uint32_t dataset, uint64_t index, std::vector<Extent> parts, Source source);
  void refine(uint32_t dataset, uint64_t index, std::vector<Extent> parts);  // as SampleSet's
  void forget_guesses(uint32_t dataset);
  // What is known of a dataset; null: there is none. Good until a session leaves.
  const SampleSet* set(uint32_t dataset) const;
  bool uses(uint32_t session, uint32_t dataset) const {
    return sessions_of(dataset).count(session) != 0;
  }
  const std::set<uint32_t>& sessions_of(uint32_t dataset) const;
  // Datasets that nobody but the session uses: they are forgotten when it leaves.
  std::vector<uint32_t> only_of(uint32_t session) const;

  // A thread (`reader`) begins and ends a sample; in between, what belongs to it. begin() returns
  // what is known of the sample. False from end(): it had not begun.
  std::span<const Extent> begin(uint32_t session, uint64_t reader, uint32_t dataset,
                                uint64_t index);
  void part(uint64_t reader, uint32_t dataset, uint64_t index, const Extent& extent);
  bool end(uint64_t reader, uint32_t dataset, uint64_t index);
  // What is known of a sample; empty: nothing.
  std::span<const Extent> parts(uint32_t dataset, uint64_t index) const;
  void forget_process(uint32_t pid);
  // The reader is in a sample whose order is known and is not the file's: its reads are no stream.
  bool reads_at_random(uint64_t reader) const;

  // Somebody goes through the dataset in an order that is not the file's, and has not ended.
  bool is_shuffled(uint32_t dataset) const;

  // The session's first process was started by one of the parent's: a worker that was spawned is a
  // session of its own, without an order, and reads its parent's.
  void set_parent(uint32_t session, uint32_t parent);
  bool has_parent(uint32_t session) const { return parents_.count(session) != 0; }

  // The first of those that started the session, itself if nobody is known to have: a job's workers
  // and ranks have one.
  uint32_t origin(uint32_t session) const;

  // Whose order a session reads, and in which epoch it is; nullopt without one.
  struct Running {
    uint32_t session = 0, epoch = 0;
  };
  std::optional<Running> running(uint32_t session, uint32_t dataset) const;

  // The next extent that a sample needs soonest: round about among the orders, each at most as many
  // bytes ahead of its readers as `window` says, or where samples are whole files
  // `file_window` for the order's spread. `judge` is asked about each.
  // kNever: it is there, or on its way, or not to be fetched. kTooLarge: there will never be room.
  enum class Verdict { kTake, kLater, kNever, kTooLarge };
  using Judge = std::function<Verdict(uint32_t session, const Extent&)>;
  struct Ahead {  // whose window is asked for; `spread` is the order's
    uint32_t session = 0, dataset = 0;
    uint64_t spread = 0;
  };
  using Window = std::function<uint64_t(const Ahead&)>;
  using FileWindow = std::function<uint64_t(uint64_t spread)>;
  std::optional<WantedExtent> next(const Window& window, const Judge& judge,
                                   const FileWindow& file_window = nullptr);

  // Nothing is to be fetched of the dataset's samples that are whole `files`, or are not.
  void set_off(uint32_t dataset, bool files, bool off) {
    const auto at = datasets_.find(dataset);
    if (at != datasets_.end()) at->second.off[files ? 1 : 0] = off;
  }

  // On trial: the control group, a half of the samples that looks random in any usual order, is
  // left to the job to read.
  static bool is_control(uint32_t index) { return (index * 0x9e3779b1U >> 16 & 1) != 0; }
  void set_trial(uint32_t dataset, bool files, bool trial) {
    const auto at = datasets_.find(dataset);
    if (at != datasets_.end()) at->second.trial[files ? 1 : 0] = trial;
  }

  // Nobody has begun the sample yet, and it is to be read where it was.
  bool is_ahead(const WantedExtent& wanted) const;

  // What next() has given out, or passed over, for samples that nobody has begun yet; and what is
  // known of those that are being read.
  void for_each_ahead(const std::function<void(const Extent&)>& visit) const;

  uint64_t bytes_of(std::span<const Extent> parts) const;
  // The memory that they take once fetched.
  uint64_t charge_of(std::span<const Extent> parts) const;

  // Whole files in the order in which all jobs together will read them, as far as that is known.
  std::vector<uint32_t> upcoming_files() const;
  // Samples of the dataset, likewise.
  std::vector<uint32_t> upcoming(uint32_t dataset) const;

  // What the dataset is, and whose order the session's reads of it follow (0: nobody's), with its
  // running epoch. `name` stays good until a session leaves. nullopt: no such dataset.
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
  static constexpr size_t kMaxOpenAll = 1 << 16;   // that all readers of one session have
  static constexpr size_t kMaxPartsAll = 1 << 20;  // and what was seen of them, not joined yet

 private:
  struct Dataset {
    Dataset(std::string text, uint64_t samples) : name(std::move(text)), set(samples) {}
    std::string name;
    SampleSet set;
    std::set<uint32_t> sessions;
    uint64_t last_use = 0;           // uses_ then
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
    std::vector<Extent> pending;  // of the sample handed out last, last one first
    WantedExtent last;            // of that sample
    uint64_t known = 0;           // samples of the dataset that were known when the order was gone
                                  // through last
    bool whole_files = false;     // the sample handed out last was
    uint64_t held = 0;            // bytes of the order that are counted in held_
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
  // Whose order the session's reads of the dataset follow; end(): nobody's, or it cannot be told.
  Jobs::const_iterator job_of(uint32_t session, uint32_t dataset) const;
  Job* job_for(uint32_t session, uint32_t dataset);
  std::optional<WantedExtent> next_of(const std::pair<uint32_t, uint32_t>& whose,
                                      const Dataset& dataset, Job& job, const Window& window,
                                      const Judge& judge, const FileWindow& file_window);

  const FileTable* const files_;
  uint32_t next_id_ = 1;
  uint64_t changes_ = 0;
  uint64_t uses_ = 0;
  uint64_t held_ = 0, most_bytes_ = uint64_t{512} << 20;
  // Whether a dataset may hold something that did not when surplus() looked last.
  mutable bool more_holders_ = false;
  bool refused_ = false;  // something was not learned for want of room, since release()
  std::map<uint32_t, Dataset> datasets_;
  std::map<std::pair<std::string, uint64_t>, uint32_t> by_name_;  // and size
  std::map<uint32_t, Opened> opened_;                             // by session
  Jobs jobs_;                                                     // by session and dataset
  std::map<uint32_t, uint32_t> parents_;                          // by session
  std::pair<uint32_t, uint32_t> last_served_;
  std::unordered_map<uint64_t, std::vector<Open>> open_;  // by reader
};

}  // namespace sluice::optimizer
