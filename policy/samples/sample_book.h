// All datasets, what is being learned about them, and every job's order over them. Pure; one
// thread.
//
// Memory is bounded: all tables and orders together take at most set_most_bytes(), and at most
// kMaxDatasets datasets (kMaxOfSession of one session) hold anything. A dataset that is evicted
// retains its id and is learned again from the next message about it, except one that does not fit
// even alone: that one is not followed any more.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/samples/begun_samples.h"
#include "policy/samples/datasets.h"
#include "policy/samples/file_table.h"
#include "policy/samples/job_orders.h"
#include "policy/samples/record_groups.h"
#include "policy/util/ids.h"

namespace sluice::policy {

class SampleBook {
 public:
  // `files` knows the sizes of whole files; it outlives the book. Without: no sample is of such.
  explicit SampleBook(const FileTable* files);
  SampleBook();
  SampleBook(const SampleBook&) = delete;
  SampleBook& operator=(const SampleBook&) = delete;

  Datasets& datasets() { return datasets_; }
  const Datasets& datasets() const { return datasets_; }
  JobOrders& orders() { return orders_; }
  const JobOrders& orders() const { return orders_; }
  RecordGroups& groups() { return groups_; }

  // The dataset of that name and size, new or known. The session uses it until it leaves; what was
  // learned is stored as long as any session uses it, or until it is evicted. Beyond
  // Datasets::kMaxNames, some of the least recently used datasets of the session that has the most
  // are removed.
  DatasetId use(SessionId session, const std::string& name, uint64_t samples);
  void leave(SessionId session);

  // Bytes that all tables and orders may take. Beyond them nothing is learned, no order accepted.
  void set_most_bytes(uint64_t bytes) { memory_.most = bytes; }
  const BookMemory& memory() const { return memory_; }
  // The dataset to evict so that there is room for `more` bytes; nullopt: there is room, or nothing
  // can be evicted. Datasets without an unfinished order come first, of those the least recently
  // used.
  struct Surplus {
    DatasetId dataset{};
    bool for_good = false;  // it does not fit: it is not followed any more
  };
  std::optional<Surplus> surplus(uint64_t more = 0);
  // Discards what was learned about the dataset, and all orders over it.
  void release(const Surplus& surplus);

  // Of a session's order, or a piece of it (SampleOrder::publish()). False: no such dataset, not
  // the session's, an index that it does not have, or no memory. `tentative`:
  // see SampleOrder.
  bool publish(SessionId session, DatasetId dataset, uint32_t epoch, uint64_t first,
               std::span<const uint32_t> indices, bool tentative = false);

  // What is known of a dataset; null: no such dataset. Valid until a session leaves.
  const SampleSet* set(DatasetId dataset) const;
  // What is known of a sample; empty: nothing.
  std::span<const Extent> parts(DatasetId dataset, uint64_t index) const;

  // A thread (`reader`, pid << 32 | tid) begins and ends a sample; part() adds what it reads in
  // between. begin() returns what is known of the sample. False from end(): it had not begun.
  // Samples that a thread begins while it is in another one, as where a batch is read with one
  // call, are read one after the other, it is not known when: they stay ahead until they end, and
  // what is not in memory yet may still be fetched before its turn.
  std::span<const Extent> begin(SessionId session, uint64_t reader, DatasetId dataset,
                                uint64_t index);
  void part(uint64_t reader, DatasetId dataset, uint64_t index, const Extent& extent) {
    begun_.part(reader, dataset, index, extent);
  }
  bool end(uint64_t reader, DatasetId dataset, uint64_t index);
  void remove_process(uint32_t pid) { begun_.remove_process(pid); }
  // The reader is in a sample of a known order that is not the file's: its reads are no stream.
  bool reads_at_random(uint64_t reader) const { return begun_.reads_at_random(reader); }

  // As JobOrders::for_each_ahead(), and visits the known extents of samples that are being read.
  void for_each_ahead(const std::function<void(const Extent&)>& visit) const;
  // As JobOrders::upcoming_files(), with the samples that are being read, and the coming readers.
  UpcomingFiles upcoming_files() const;

  // The dataset, the session whose order this session's reads follow (kNoSession: none), and that
  // order's running epoch. `name` is valid until a session leaves. nullopt: no such dataset.
  struct Following {
    std::string_view name;
    uint64_t samples = 0;
    SessionId session{};
    uint32_t epoch = 0;
  };
  std::optional<Following> following(SessionId session, DatasetId dataset) const;

  struct View {
    DatasetId dataset{};
    SessionId session{};
    uint32_t epoch = 0;
    std::string name;
    uint64_t samples = 0, known = 0, order = 0, taken = 0, ahead_bytes = 0;
  };
  std::vector<View> views() const;

  static constexpr size_t kMaxDatasets = 256;   // that hold anything
  static constexpr size_t kMaxOfSession = 128;  // of one session

 private:
  struct Holder {  // a dataset that holds memory
    DatasetId dataset{};
    const Datasets::Dataset* entry = nullptr;
    uint64_t bytes = 0;
    bool unfinished = false;  // some order over it is
  };
  std::vector<Holder> holders() const;  // least recently used first

  BookMemory memory_;
  Datasets datasets_{&memory_};
  JobOrders orders_;
  BegunSamples begun_;
  RecordGroups groups_;
};

}  // namespace sluice::policy
