#include "policy/samples/key_guess.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "policy/samples/key_scheme.h"

namespace sluice::policy {
namespace {

using Kind = KeyScheme::Kind;
using State = Guessing::State;

constexpr uint32_t kNoRecord = UINT32_MAX;

// By sample: the record that a scheme finds for it. Ends at the highest sample that has a record.
using Table = std::vector<uint32_t>;

// An observation as records, without reads of the meta pages.
struct Sighting {
  uint64_t index = 0;
  std::vector<uint32_t> records;
};

uint32_t at(const Table& table, uint64_t sample) {
  return sample < table.size() ? table[sample] : kNoRecord;
}

class Guesser {
 public:
  Guesser(const RecordList& records, FileId file, uint64_t samples)
      : records_(records), file_(file), samples_(samples) {}

  Guessing run(std::span<const Observation> seen) {
    if (samples_ == 0 || samples_ > kMostGuessed || records_.size() >= kNoRecord) return {};
    if (!identify(seen)) return {};
    const std::optional<size_t> each = shape();
    if (!each) return {State::kWait, std::nullopt};
    if (*each > kMostRecordsEach) return {};
    for (size_t slot = 0; slot < *each; ++slot) {
      const State state = decide(slot, *each);
      if (state != State::kGuessed) return {state, std::nullopt};
    }
    if (!varies_ || !all_agree()) return {};
    return {State::kGuessed, SampleGuess(name_, *each, extents())};
  }

 private:
  // Finds the records that begin where something was read. False: some read does not cover exactly
  // a whole value.
  bool identify(std::span<const Observation> seen) {
    std::unordered_map<uint64_t, uint32_t> record_at;  // by offset
    for (const Observation& one : seen) {
      if (one.index >= samples_) return false;
      for (const Extent& part : one.parts) {
        if (part.file != file_) return false;
        record_at.emplace(part.offset, kNoRecord);
      }
    }
    for (uint32_t record = 0; record < records_.size(); ++record) {
      if (records_.length(record) == 0) continue;
      const auto found = record_at.find(records_.offset(record));
      if (found != record_at.end()) found->second = record;
    }
    for (const Observation& one : seen) {
      Sighting sighting{one.index, {}};
      for (const Extent& part : one.parts) {
        if (part.offset + part.length <= records_.values_begin()) continue;
        const uint32_t record = record_at.at(part.offset);
        if (record == kNoRecord || records_.length(record) != part.length) return false;
        sighting.records.push_back(record);
      }
      sightings_.push_back(std::move(sighting));
    }
    return true;
  }

  // The number of records that most observed samples have. nullopt: too few agree.
  std::optional<size_t> shape() const {
    std::map<size_t, std::set<uint64_t>> samples;  // by number of records
    for (const Sighting& one : sightings_) {
      if (!one.records.empty()) samples[one.records.size()].insert(one.index);
    }
    const auto most = std::max_element(samples.begin(), samples.end(), [](auto& a, auto& b) {
      return a.second.size() < b.second.size();
    });
    if (most == samples.end() || most->second.size() < kEnoughSeen) return std::nullopt;
    return most->first;
  }

  // Finds the record of every sample at place `slot`. Where schemes find different records for the
  // same sample, nothing is decided yet.
  State decide(size_t slot, size_t each) {
    std::vector<SeenRecord> seen;
    for (const Sighting& one : sightings_) {
      if (one.records.size() == each) seen.push_back({one.index, one.records[slot]});
    }
    const std::vector<KeyScheme> schemes = schemes_for(records_, samples_, seen);
    if (schemes.empty()) return State::kNone;
    Table merged;
    Table best;
    size_t most = 0;
    const KeyScheme* chosen = nullptr;
    for (const KeyScheme& scheme : schemes) {
      Table table;
      size_t found = 0;
      if (!fill(scheme, &table, &found) || !merge(table, &merged)) return State::kWait;
      // Among schemes by key, the one that finds most records: a wrong width misses some. A scheme
      // by place in the key order finds a record for every sample, right or wrong.
      if (chosen != nullptr && (found < most || scheme.kind == Kind::kRecord)) continue;
      best = std::move(table);
      most = found;
      chosen = &scheme;
    }
    varies_ = varies_ || chosen->kind != Kind::kAlways;
    name_ += (slot == 0 ? "" : ", ") + chosen->name(records_);
    tables_.push_back(std::move(best));
    return State::kGuessed;
  }

  bool fill(const KeyScheme& scheme, Table* table, size_t* found) const {
    if (scheme.kind == Kind::kAlways) {
      table->assign(samples_, static_cast<uint32_t>(scheme.base));
      *found = samples_;
      return true;
    }
    for (uint32_t record = 0; record < records_.size(); ++record) {
      const std::optional<uint64_t> sample = scheme.sample_of(records_, record, samples_);
      if (!sample) continue;
      if (*sample >= table->size()) table->resize(*sample + 1, kNoRecord);
      if ((*table)[*sample] != kNoRecord) return false;
      (*table)[*sample] = record;
      ++*found;
    }
    return true;
  }

  static bool merge(const Table& table, Table* merged) {
    if (merged->size() < table.size()) merged->resize(table.size(), kNoRecord);
    for (size_t i = 0; i < table.size(); ++i) {
      if (table[i] == kNoRecord) continue;
      if ((*merged)[i] != kNoRecord && (*merged)[i] != table[i]) return false;
      (*merged)[i] = table[i];
    }
    return true;
  }

  // Empty: the sample lacks one of its records.
  std::vector<uint32_t> predicted(uint64_t sample) const {
    std::vector<uint32_t> found;
    for (const Table& table : tables_) {
      const uint32_t record = at(table, sample);
      if (record == kNoRecord || records_.length(record) == 0) return {};
      found.push_back(record);
    }
    return found;
  }

  // Each observation is what was predicted, plus only records that belong to no sample.
  bool all_agree() const {
    std::vector<bool> sample_has(records_.size());
    for (const Table& table : tables_) {
      for (const uint32_t record : table) {
        if (record != kNoRecord) sample_has[record] = true;
      }
    }
    return std::all_of(sightings_.begin(), sightings_.end(), [&](const Sighting& one) {
      std::vector<uint32_t> own;
      std::copy_if(one.records.begin(), one.records.end(), std::back_inserter(own),
                   [&](uint32_t record) { return sample_has[record]; });
      return own == predicted(one.index);
    });
  }

  std::vector<Extent> extents() const {
    size_t longest = SIZE_MAX;
    for (const Table& table : tables_) longest = std::min(longest, table.size());
    std::vector<Extent> all(longest * tables_.size());
    for (size_t sample = 0; sample < longest; ++sample) {
      size_t place = sample * tables_.size();
      for (const uint32_t record : predicted(sample)) {
        all[place++] = {records_.offset(record), records_.length(record), file_};
      }
    }
    return all;
  }

  const RecordList& records_;
  const FileId file_;
  const uint64_t samples_;
  std::vector<Sighting> sightings_;
  std::vector<Table> tables_;  // one for each record of a sample
  std::string name_;
  bool varies_ = false;  // some record is not the same for all samples
};

}  // namespace

Guessing guess_keys(const RecordList& records, FileId file, uint64_t samples,
                    std::span<const Observation> seen) {
  return Guesser(records, file, samples).run(seen);
}

}  // namespace sluice::policy
