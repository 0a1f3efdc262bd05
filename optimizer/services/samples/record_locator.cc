#include "optimizer/services/samples/record_locator.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <iterator>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "optimizer/io/hdf5_chunks.h"
#include "optimizer/io/lmdb_records.h"
#include "optimizer/io/log.h"
#include "optimizer/io/residency.h"
#include "policy/samples/chunk_guess.h"
#include "policy/samples/key_guess.h"
#include "policy/samples/ordered_rows.h"
#include "policy/samples/row_guess.h"

namespace sluice::optimizer {

using policy::DatasetId;
using policy::Datasets;
using policy::Extent;
using policy::FileId;
using policy::guess_chunks;
using policy::guess_keys;
using policy::guess_ordered_rows;
using policy::guess_rows;
using policy::Guessing;
using policy::kEnoughSeen;
using policy::kMostGuessed;
using policy::kNoFile;
using policy::Observation;
using policy::RecordList;
using policy::SampleGuess;
using policy::SampleSet;
using policy::Source;
namespace {

constexpr uint64_t kNever = UINT64_MAX;
constexpr uint64_t kPatience = 4;          // the next guess waits for so many times the samples
constexpr uint64_t kPatienceForMore = 2;   // where a guess leaves samples out
constexpr uint64_t kSlice = 1 << 15;       // samples learned per turn of the core thread
constexpr size_t kMostObserved = 1 << 16;  // samples that one guess uses
constexpr uint64_t kMostDeclaredBytes = 256 << 20;  // of keys that wait for their files

std::string path_of(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

// The file's first bytes, if they are cached: a process that has an LMDB or HDF5 file open has read
// them. Zeros: they are not.
std::array<std::byte, 24> cached_beginning(int fd) {
  std::array<std::byte, 24> beginning{};
  uint64_t here = 0;
  if (!cached_bytes(fd, {0, beginning.size()}, false, &here) || here != beginning.size() ||
      pread(fd, beginning.data(), beginning.size(), 0) != static_cast<ssize_t>(beginning.size())) {
    beginning.fill({});
  }
  return beginning;
}

// By the chunks of an HDF5 file's datasets.
Guessing guess_hdf5(int fd, uint64_t size, FileId file, uint64_t samples,
                    const std::vector<Observation>& observed, const std::atomic<bool>& stop) {
  const Hdf5Read read = [&](uint64_t offset, void* out, uint64_t bytes) {
    return !stop.load(std::memory_order_relaxed) &&
           pread(fd, out, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
  };
  const Hdf5Ahead ahead = [&](uint64_t offset, uint64_t bytes) {
    posix_fadvise(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
  };
  return guess_chunks(find_hdf5_chunks(read, ahead, size, samples), file, samples, observed);
}

// Null: *why is one line.
std::shared_ptr<const RecordList> list_records(int fd, const std::atomic<bool>& stop,
                                               const LmdbLimits& limits, std::string* why) {
  LmdbListing listing = list_lmdb_records(path_of(fd), stop, limits);
  *why = listing.why;
  if (!listing.records) return nullptr;
  return std::make_shared<const RecordList>(std::move(*listing.records));
}

}  // namespace

struct RecordLocator::Found {
  std::shared_ptr<const RecordList> records;
  std::string why;
  Guessing guessing;
};

void RecordLocator::with_file(const FileEntry& file,
                              std::function<void(int fd, const std::atomic<bool>& stop)> work,
                              std::function<void()> done) {
  files_->read_started(file.id);
  Reading& reading = reading_[file.id];
  if (reading.stop == nullptr) reading.stop = std::make_shared<std::atomic<bool>>(stopped_);
  ++reading.count;
  base_->executor.run(file.device,
                      [this, mailbox = base_->loop.mailbox(), id = file.id, fd = file.fd.get(),
                       stop = reading.stop, work = std::move(work), done = std::move(done)] {
                        try {
                          if (!stop->load()) work(fd, *stop);
                        } catch (const std::exception& error) {  // bad_alloc: nothing is learned
                          say(Level::kWarn, "records are not listed: {}", error.what());
                        }
                        mailbox->post([this, id, done] {
                          if (--reading_.at(id).count == 0) reading_.erase(id);
                          done();
                          files_->read_ended(id);
                        });
                      });
}

void RecordLocator::stop_all() {
  stopped_ = true;
  for (const auto& [file, reading] : reading_) reading.stop->store(true);
}

// Keys, the places of their values, and the index that finds a key take an eighth of the budget.
LmdbLimits RecordLocator::limits() const {
  LmdbLimits most;
  most.records = std::min(most.records, budget_ / 1024);
  most.key_bytes = std::min(most.key_bytes, budget_ / 32);
  return most;
}

uint64_t RecordLocator::Declared::bytes() const {
  uint64_t sum = sizeof *this + keys.size() * sizeof(std::string);
  for (const std::string& key : keys) sum += key.size();
  return sum;
}

bool RecordLocator::declared(DatasetId dataset, FileId file, uint64_t first,
                             const std::vector<std::string_view>& keys) {
  const FileEntry* entry = files_->find(file);
  if (entry == nullptr || entry->state == FileEntry::State::kOff) return true;
  Declared declared{dataset, file, first, {keys.begin(), keys.end()}};
  uint64_t bytes = declared.bytes();
  for (const Declared& one : waiting_) bytes += one.bytes();
  if (bytes > kMostDeclaredBytes) return false;
  waiting_.push_back(std::move(declared));
  if (entry->state == FileEntry::State::kReady) look_up(*entry);
  return true;
}

// Keys come in pieces: those that arrive during a look-up are then looked up together.
void RecordLocator::look_up(const FileEntry& file) {
  if (searched_.count(file.id) != 0) return;
  struct Answer {
    std::vector<std::tuple<DatasetId, uint64_t, Extent>> places;  // sample
    std::string why;
  };
  const auto answer = std::make_shared<Answer>();
  const auto batch = std::make_shared<std::list<Declared>>();
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    const auto next = std::next(at);
    if (at->file == file.id) batch->splice(batch->end(), waiting_, at);
    at = next;
  }
  if (batch->empty()) return;
  searched_.insert(file.id);
  with_file(
      file,
      [answer, batch, most = limits()](int fd, const std::atomic<bool>& stop) {
        const auto records = list_records(fd, stop, most, &answer->why);
        if (records == nullptr) return;
        std::unordered_map<std::string_view, size_t> by_key;
        by_key.reserve(records->size());
        for (size_t i = 0; i < records->size(); ++i) by_key.emplace(records->key(i), i);
        for (const Declared& declared : *batch) {
          for (size_t i = 0; i < declared.keys.size(); ++i) {
            const auto at = by_key.find(declared.keys[i]);
            if (at == by_key.end() || declared.keys[i].empty()) continue;
            answer->places.push_back(
                {declared.dataset,
                 declared.first + i,
                 {records->offset(at->second), records->length(at->second), declared.file}});
          }
        }
      },
      [this, answer, id = file.id, shown = file.path] {
        searched_.erase(id);
        if (!answer->why.empty())
          say(Level::kInfo, "{}: no keys looked up: {}", shown, answer->why);
        for (const auto& [dataset, index, extent] : answer->places) {
          plans_->samples.datasets().learn(dataset, index, {extent}, Source::kDeclared);
        }
        if (!answer->places.empty()) plans_->orders_changed = true;
        const FileEntry* entry = files_->find(id);
        if (entry != nullptr && entry->state == FileEntry::State::kReady) look_up(*entry);
      });
}

void RecordLocator::file_ready(const FileEntry& file) {
  look_up(file);
  for (auto& [id, dataset] : datasets_) {
    if (dataset.waits_for != file.id) continue;
    dataset.waits_for = kNoFile;
    if (plans_->samples.set(id) != nullptr && !dataset.trying && !dataset.guess)
      try_guess(id, dataset);
  }
}

void RecordLocator::seen(DatasetId id, uint64_t index) {
  Dataset& dataset = datasets_[id];
  if (dataset.next_try == 0) dataset.next_try = kEnoughSeen;
  ++dataset.seen;
  const SampleSet* set = plans_->samples.set(id);
  if (set == nullptr) return;
  if (dataset.guess) {
    const std::span<const Extent> parts = set->parts(index);
    const bool seen_itself = !parts.empty() && set->source(index) == Source::kSeen;
    if (seen_itself && !dataset.guess->agrees({index, {parts.begin(), parts.end()}})) {
      say(Level::kInfo, "sample {} contradicts the guess \"{}\", which is dropped", index,
          dataset.guess->name());
      dataset.guess.reset();
      plans_->samples.datasets().drop(id, Source::kGuessed);
    } else if (seen_itself && dataset.guess->is_finer()) {
      const std::span<const Extent> exact = dataset.guess->parts(index);
      if (!exact.empty())
        plans_->samples.datasets().refine(id, index, {exact.begin(), exact.end()});
    }
    if (dataset.guess && !dataset.guess->is_partial()) return;
  }
  if (dataset.seen < dataset.next_try || dataset.trying || set->known() == set->samples()) return;
  dataset.next_try = dataset.seen * (dataset.guess ? kPatienceForMore : kPatience);
  try_guess(id, dataset);
}

void RecordLocator::doubt(DatasetId id) {
  Datasets& datasets = plans_->samples.datasets();
  if (!datasets.refuted(id)) return;
  if (const Datasets::Dataset* dataset = datasets.find(id)) {
    say(Level::kInfo, "{}: its samples are not the files that the job declared", dataset->name);
  }
  datasets.drop(id, Source::kDeclared);
  plans_->orders_changed = true;
}

// What is known where samples are guessed.
struct RecordLocator::Guessed {
  FileId file;    // that was read for the observed samples
  bool several;   // others were, too
  uint64_t size;  // of the file, bytes
  uint64_t samples;
  LmdbLimits most;
};

void RecordLocator::guess(int fd, const std::atomic<bool>& stop, const Guessed& known,
                          const std::vector<Observation>& observed, Found* found) {
  if (known.several) {
    found->guessing = guess_ordered_rows(known.samples, observed);
    return;
  }
  const auto beginning = cached_beginning(fd);
  if (found->records == nullptr && looks_like_lmdb(beginning)) {
    found->records = list_records(fd, stop, known.most, &found->why);
  }
  if (found->records != nullptr) {
    found->guessing = guess_keys(*found->records, known.file, known.samples, observed);
  } else if (found->why.empty()) {
    if (looks_like_hdf5(beginning.data())) {
      found->guessing = guess_hdf5(fd, known.size, known.file, known.samples, observed, stop);
      if (found->guessing.state == Guessing::State::kGuessed) return;
    }
    found->guessing = guess_rows(known.size, known.file, known.samples, observed);
    if (found->guessing.state == Guessing::State::kNone) {
      found->guessing = guess_ordered_rows(known.samples, observed);
    }
  }
}

void RecordLocator::try_guess(DatasetId id, Dataset& dataset) {
  const SampleSet& set = *plans_->samples.set(id);
  if (set.samples() > std::min(kMostGuessed, limits().records)) {
    dataset.next_try = kNever;
    return;
  }
  auto observed = std::make_shared<std::vector<Observation>>();
  FileId file{};
  bool whole = false, several = false;  // files
  set.for_each_known([&](uint64_t i) {
    const std::span<const Extent> parts = set.parts(i);
    if (set.source(i) != Source::kSeen) return true;
    // Seen in a file that was released and is now followed under another id, if at all.
    const FileId followed = parts.front().file.followed();
    if (followed != kNoFile && files_->find(followed) == nullptr) return true;
    if (file == kNoFile) file = followed;
    const auto other = [file](const Extent& part) { return part.file != file; };
    whole = std::any_of(parts.begin(), parts.end(),
                        [](const Extent& part) { return part.file.is_whole(); });
    several |= std::any_of(parts.begin(), parts.end(), other);
    if (!whole) observed->push_back({i, {parts.begin(), parts.end()}});
    return !whole && observed->size() < kMostObserved;
  });
  if (whole) {
    dataset.next_try = kNever;
    return;
  }
  const FileEntry* entry = files_->find(file);
  if (entry == nullptr || observed->size() < kEnoughSeen) return;
  if (entry->state != FileEntry::State::kReady) {
    dataset.waits_for = file;
    return;
  }
  if (dataset.file != file) dataset.records = nullptr;
  dataset.file = file;
  dataset.trying = true;
  const auto found = std::make_shared<Found>();
  found->records = dataset.records;
  with_file(
      *entry,
      [found, observed, file, several, size = entry->size, samples = set.samples(),
       most = limits()](int fd, const std::atomic<bool>& stop) {
        guess(fd, stop, {file, several, size, samples, most}, *observed, found.get());
      },
      [this, id, file, found] { guessed(id, file, std::move(*found)); });
}

void RecordLocator::guessed(DatasetId id, FileId file, Found found) {
  const auto at = datasets_.find(id);
  const SampleSet* set = plans_->samples.set(id);
  if (at == datasets_.end() || set == nullptr) return;
  Dataset& dataset = at->second;
  dataset.trying = false;
  if (!found.why.empty()) {
    const FileEntry* entry = files_->find(file);
    say(Level::kInfo, "{}: no records listed: {}", entry != nullptr ? entry->path : "a file",
        found.why);
    dataset.next_try = kNever;
    return;
  }
  const bool waits = found.guessing.state == Guessing::State::kWait;
  dataset.records = waits ? found.records : nullptr;
  if (found.guessing.state != Guessing::State::kGuessed) return;
  dataset.guess = std::move(found.guessing.guess);
  apply_guess(id, 0);
}

// Millions of samples would block the core thread: learned a slice at a time.
void RecordLocator::apply_guess(DatasetId id, uint64_t first) {
  const auto at = datasets_.find(id);
  const SampleSet* set = plans_->samples.set(id);
  if (at == datasets_.end() || set == nullptr || !at->second.guess) return;
  const SampleGuess& guess = *at->second.guess;
  const uint64_t count = std::min(guess.samples(), set->samples());
  const uint64_t end = std::min(count, first + kSlice);
  for (uint64_t i = first; i < end; ++i) {
    const std::span<const Extent> parts = guess.parts(i);
    if (!parts.empty()) {
      plans_->samples.datasets().learn(id, i, {parts.begin(), parts.end()}, Source::kGuessed);
    }
  }
  plans_->orders_changed = true;
  if (end < count) {
    base_->loop.mailbox()->post([this, id, end] { apply_guess(id, end); });
    return;
  }
  const FileEntry* entry = files_->find(at->second.file);
  say(Level::kInfo, "{}: a sample's record is \"{}\"; {} of {} samples are known",
      entry != nullptr ? entry->path : "a file", guess.name(), set->known(), set->samples());
}

void RecordLocator::session_ended() {
  std::erase_if(datasets_,
                [this](const auto& entry) { return plans_->samples.set(entry.first) == nullptr; });
  waiting_.remove_if([this](const Declared& declared) {
    return plans_->samples.set(declared.dataset) == nullptr;
  });
  for (const auto& [id, reading] : reading_) {
    const FileEntry* file = files_->find(id);
    if (file == nullptr || file->state == FileEntry::State::kClosing) reading.stop->store(true);
  }
}

}  // namespace sluice::optimizer
