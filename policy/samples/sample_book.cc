#include "policy/samples/sample_book.h"

#include <algorithm>

namespace sluice::optimizer {
namespace {

constexpr size_t kMaxPartsSeen = 1024;   // of one sample, before neighbours are joined
constexpr unsigned kMaxLooks = 1 << 16;  // positions examined in one call
constexpr unsigned kMaxParents = 8;      // from a worker up to the session with the order
// An order is searched again when so many more samples are known, or this fraction of the order.
constexpr uint64_t kWorthwhile = 16;
constexpr uint64_t kWorthwhileShare = 64;

// Interleaves the lists.
std::vector<uint32_t> in_turns(std::vector<std::vector<uint32_t>> each) {
  if (each.size() == 1) return std::move(each.front());
  size_t longest = 0;
  for (const std::vector<uint32_t>& one : each) longest = std::max(longest, one.size());
  std::vector<uint32_t> all;
  for (size_t at = 0; at < longest; ++at) {
    for (const std::vector<uint32_t>& one : each) {
      if (at < one.size()) all.push_back(one[at]);
    }
  }
  return all;
}

}  // namespace

SampleBook::SampleBook() {
  static const FileTable kNoFiles;
  files_ = &kNoFiles;
}

uint32_t SampleBook::use(uint32_t session, const std::string& name, uint64_t samples) {
  const auto known = by_name_.find({name, samples});
  if (known != by_name_.end()) {
    Dataset& dataset = datasets_.at(known->second);
    dataset.sessions.insert(session);
    dataset.last_use = ++uses_;
    return known->second;
  }
  if (datasets_.size() >= kMaxNames) drop_names();
  const uint32_t id = new_id();
  Dataset& dataset = datasets_.try_emplace(id, name, samples).first->second;
  dataset.sessions.insert(session);
  dataset.last_use = ++uses_;
  by_name_[{name, samples}] = id;
  return id;
}

void SampleBook::leave(uint32_t session) {
  ++changes_;
  erase_jobs([session](const auto& key) { return key.first == session; });
  std::erase_if(parents_, [&](const auto& entry) {
    return entry.first == session || entry.second == session;
  });
  forget_open([session](uint64_t, const Open& open) { return open.session == session; });
  for (auto at = datasets_.begin(); at != datasets_.end();) {
    at->second.sessions.erase(session);
    if (!at->second.sessions.empty()) {
      ++at;
      continue;
    }
    held_ -= at->second.set.held();
    by_name_.erase({at->second.name, at->second.set.samples()});
    at = datasets_.erase(at);
  }
}

bool SampleBook::publish(uint32_t session, uint32_t dataset, uint32_t epoch, uint64_t first,
                         std::span<const uint32_t> indices) {
  Dataset* const entry = followed(session, dataset);
  if (entry == nullptr || held_ + indices.size() * SampleOrder::kPositionBytes > most_bytes_) {
    return false;
  }
  const uint64_t samples = entry->set.samples();
  if (std::any_of(indices.begin(), indices.end(), [&](uint32_t i) { return i >= samples; })) {
    return false;
  }
  entry->last_use = ++uses_;
  Job& job = jobs_[{session, dataset}];
  more_holders_ |= job.held == 0;
  ++changes_;
  job.order.publish(epoch, first, indices);
  job.pending.clear();
  held_ -= job.held;
  job.held = job.order.held();
  held_ += job.held;
  return true;
}

bool SampleBook::all_samples(uint32_t session,
                             const std::function<bool(std::span<const Extent>)>& test) const {
  bool any = false;
  for (const auto& [id, dataset] : datasets_) {
    if (dataset.sessions.count(session) == 0) continue;
    any = true;
    if (dataset.set.known() < dataset.set.samples()) return false;
    for (uint64_t index = 0; index < dataset.set.samples(); ++index) {
      const Source source = dataset.set.source(index);
      if (source != Source::kSeen && source != Source::kDeclared) return false;
      if (!test(dataset.set.parts(index))) return false;
    }
  }
  return any;
}

bool SampleBook::wants_places(uint32_t session) const {
  return std::any_of(jobs_.begin(), jobs_.end(), [this, session](const auto& entry) {
    const auto at = datasets_.find(entry.first.second);
    if (at == datasets_.end() || at->second.sessions.count(session) == 0 ||
        entry.second.order.sequential()) {
      return false;
    }
    const SampleSet& set = at->second.set;
    return set.known() < set.samples() - set.samples() / 20;
  });
}

bool SampleBook::locate(uint32_t session, uint32_t dataset, uint64_t index,
                        std::vector<Extent> parts, Source source) {
  Dataset* const entry = followed(session, dataset);
  if (entry == nullptr || index >= entry->set.samples()) return false;
  entry->last_use = ++uses_;
  learn_in(*entry, index, std::move(parts), source);
  return true;
}

void SampleBook::learn(uint32_t dataset, uint64_t index, std::vector<Extent> parts, Source source) {
  const auto at = datasets_.find(dataset);
  if (at != datasets_.end()) learn_in(at->second, index, std::move(parts), source);
}

void SampleBook::refine(uint32_t dataset, uint64_t index, std::vector<Extent> parts) {
  const auto at = datasets_.find(dataset);
  if (at == datasets_.end()) return;
  held_ -= at->second.set.held();
  at->second.set.refine(index, std::move(parts));
  held_ += at->second.set.held();
}

void SampleBook::forget_guesses(uint32_t dataset) {
  const auto at = datasets_.find(dataset);
  if (at == datasets_.end()) return;
  held_ -= at->second.set.held();
  at->second.set.forget_guesses();
  held_ += at->second.set.held();
}

const SampleSet* SampleBook::set(uint32_t dataset) const {
  const auto at = datasets_.find(dataset);
  return at == datasets_.end() ? nullptr : &at->second.set;
}

std::vector<uint32_t> SampleBook::only_of(uint32_t session) const {
  std::vector<uint32_t> found;
  for (const auto& [id, dataset] : datasets_) {
    if (dataset.sessions.size() == 1 && *dataset.sessions.begin() == session) found.push_back(id);
  }
  return found;
}

const std::set<uint32_t>& SampleBook::sessions_of(uint32_t dataset) const {
  static const std::set<uint32_t> kNone;
  const auto at = datasets_.find(dataset);
  return at == datasets_.end() ? kNone : at->second.sessions;
}

std::vector<uint32_t> SampleBook::upcoming(uint32_t dataset) const {
  std::vector<std::vector<uint32_t>> each;
  for (const auto& [key, job] : jobs_) {
    if (key.second != dataset) continue;
    std::vector<uint32_t>& samples = each.emplace_back();
    job.order.for_each_left([&](uint32_t index) { samples.push_back(index); });
  }
  return in_turns(std::move(each));
}

std::vector<uint32_t> SampleBook::upcoming_files() const {
  std::vector<std::vector<uint32_t>> each;
  for (const auto& [key, job] : jobs_) {
    const auto dataset = datasets_.find(key.second);
    if (dataset == datasets_.end()) continue;
    std::vector<uint32_t>& files = each.emplace_back();
    job.order.for_each_left([&, &set = dataset->second.set](uint32_t index) {
      for (const Extent& part : set.parts(index)) {
        if (part.file.is_whole()) files.push_back(part.file.whole());
      }
    });
  }
  return in_turns(std::move(each));
}

void SampleBook::set_parent(uint32_t session, uint32_t parent) {
  if (session != parent) parents_[session] = parent;
}

uint32_t SampleBook::origin(uint32_t session) const {
  for (unsigned up = 0; up < kMaxParents; ++up) {
    const auto parent = parents_.find(session);
    if (parent == parents_.end()) break;
    session = parent->second;
  }
  return session;
}

// A session without an order of its own reads that of its nearest ancestor; without a known
// ancestor, the only order that exists.
SampleBook::Jobs::const_iterator SampleBook::job_of(uint32_t session, uint32_t dataset) const {
  uint32_t owner = session;
  for (unsigned up = 0; up < kMaxParents; ++up) {
    const auto own = jobs_.find({owner, dataset});
    if (own != jobs_.end()) return own;
    const auto parent = parents_.find(owner);
    if (parent == parents_.end()) break;
    owner = parent->second;
  }
  auto only = jobs_.end();
  for (auto at = jobs_.begin(); at != jobs_.end(); ++at) {
    if (at->first.second != dataset) continue;
    if (only != jobs_.end()) return jobs_.end();
    only = at;
  }
  return only;
}

SampleBook::Job* SampleBook::job_for(uint32_t session, uint32_t dataset) {
  const auto at = job_of(session, dataset);
  return at == jobs_.end() ? nullptr : &jobs_.at(at->first);
}

std::optional<SampleBook::Running> SampleBook::running(uint32_t session, uint32_t dataset) const {
  const auto at = job_of(session, dataset);
  if (at == jobs_.end()) return std::nullopt;
  return Running{at->first.first, at->second.order.epoch()};
}

std::span<const Extent> SampleBook::begin(uint32_t session, uint64_t reader, uint32_t dataset,
                                          uint64_t index) {
  Dataset* const entry = followed(session, dataset);
  if (entry == nullptr || index >= entry->set.samples()) return {};
  entry->last_use = ++uses_;
  const auto same_reader = open_.find(reader);
  // Samples whose end events were lost have filled the table.
  if (same_reader == open_.end() && open_.size() >= kMaxReaders) {
    forget_open([](uint64_t, const Open&) { return true; });
  } else if (same_reader != open_.end() && same_reader->second.size() >= kMaxOpen) {
    forget_open([reader](uint64_t other, const Open&) { return other == reader; });
  }
  if (opened_[session].samples >= kMaxOpenAll || opened_[session].parts >= kMaxPartsAll) {
    forget_open([session](uint64_t, const Open& open) { return open.session == session; });
  }
  Job* job = job_for(session, dataset);
  open_[reader].push_back(
      {session, dataset, index, job != nullptr && !job->order.sequential(), {}});
  ++opened_[session].samples;
  if (job != nullptr) job->order.take(static_cast<uint32_t>(index));
  return entry->set.parts(index);
}

void SampleBook::forget_open(const std::function<bool(uint64_t, const Open&)>& which) {
  for (auto at = open_.begin(); at != open_.end();) {
    std::erase_if(at->second, [&](const Open& open) {
      if (!which(at->first, open)) return false;
      Opened& opened = opened_[open.session];
      --opened.samples;
      opened.parts -= open.parts.size();
      return true;
    });
    at = at->second.empty() ? open_.erase(at) : std::next(at);
  }
  std::erase_if(opened_, [](const auto& entry) { return entry.second.samples == 0; });
}

SampleBook::Open* SampleBook::find_open(uint64_t reader, uint32_t dataset, uint64_t index) {
  const auto at = open_.find(reader);
  if (at == open_.end()) return nullptr;
  for (auto open = at->second.rbegin(); open != at->second.rend(); ++open) {
    if (open->dataset == dataset && open->index == index) return &*open;
  }
  return nullptr;
}

void SampleBook::part(uint64_t reader, uint32_t dataset, uint64_t index, const Extent& extent) {
  Open* open = find_open(reader, dataset, index);
  if (open == nullptr || open->parts.size() >= kMaxPartsSeen) return;
  open->parts.push_back(extent);
  ++opened_[open->session].parts;
}

bool SampleBook::end(uint64_t reader, uint32_t dataset, uint64_t index) {
  Open* open = find_open(reader, dataset, index);
  if (open == nullptr) return false;
  Opened& opened = opened_[open->session];
  --opened.samples;
  opened.parts -= open->parts.size();
  const auto set = datasets_.find(dataset);
  // Nothing seen: the sample came from the job's own memory, or from files that are not followed.
  // What was learned before stays valid.
  if (set != datasets_.end() && !open->parts.empty()) {
    const SampleSet& known = set->second.set;
    const std::span<const Extent> before = known.parts(index);
    // Pages are less precise than what the job declared, or what an earlier run saw exactly.
    const bool exact = !before.empty() && known.source(index) != Source::kSeen &&
                       known.source(index) != Source::kGuessed;
    merge_neighbours(&open->parts);
    if (exact && is_coarser(open->parts, before)) open->parts = {before.begin(), before.end()};
    learn_in(set->second, index, std::move(open->parts), Source::kSeen);
  }
  std::vector<Open>& all = open_.at(reader);
  all.erase(all.begin() + (open - all.data()));
  if (all.empty()) open_.erase(reader);
  return true;
}

std::span<const Extent> SampleBook::parts(uint32_t dataset, uint64_t index) const {
  const auto at = datasets_.find(dataset);
  if (at == datasets_.end()) return {};
  return at->second.set.parts(index);
}

void SampleBook::forget_process(uint32_t pid) {
  forget_open([pid](uint64_t reader, const Open&) { return reader >> 32 == pid; });
}

bool SampleBook::reads_at_random(uint64_t reader) const {
  const auto at = open_.find(reader);
  return at != open_.end() && at->second.back().random;
}

bool SampleBook::is_shuffled(uint32_t dataset) const {
  return std::any_of(jobs_.begin(), jobs_.end(), [dataset](const auto& entry) {
    const SampleOrder& order = entry.second.order;
    return entry.first.second == dataset && !order.sequential() && order.taken() < order.size();
  });
}

std::optional<WantedExtent> SampleBook::next(const Window& window, const Judge& judge,
                                             const FileWindow& file_window) {
  auto at = jobs_.upper_bound(last_served_);
  for (size_t asked = 0; asked < jobs_.size(); ++asked, ++at) {
    if (at == jobs_.end()) at = jobs_.begin();
    auto& [key, job] = *at;
    const auto dataset = datasets_.find(key.second);
    if (dataset == datasets_.end()) continue;
    const auto wanted = next_of(key, dataset->second, job, window, judge, file_window);
    if (!wanted) continue;
    last_served_ = key;
    return wanted;
  }
  return std::nullopt;
}

std::optional<WantedExtent> SampleBook::next_of(const std::pair<uint32_t, uint32_t>& whose,
                                                const Dataset& dataset, Job& job,
                                                const Window& window, const Judge& judge,
                                                const FileWindow& file_window) {
  const uint32_t session = whose.first;
  for (unsigned looks = 0; looks < kMaxLooks; ++looks) {
    while (!job.pending.empty()) {
      const Extent extent = job.pending.back();
      const FetchVerdict verdict = judge(session, extent);
      if (verdict == FetchVerdict::kLater) return std::nullopt;
      job.pending.pop_back();
      if (verdict == FetchVerdict::kTooLarge) job.order.lighten(extent.length);
      job.last.extent = extent;
      if (verdict == FetchVerdict::kTake) return job.last;
    }
    const bool files = job.whole_files && file_window != nullptr;
    const uint64_t most = files ? file_window(job.order.spread())
                                : window({session, whose.second, job.order.spread()});
    if (job.order.ahead_bytes() >= most) return std::nullopt;
    const auto index = job.order.peek();
    if (!index) {
      const uint64_t more = std::max(kWorthwhile, job.order.size() / kWorthwhileShare);
      if (dataset.set.known() < job.known + more) return std::nullopt;
      job.known = dataset.set.known();
      job.order.rewind();
      continue;
    }
    const auto parts = dataset.set.parts(*index);
    job.whole_files = is_of_files(parts);
    if (!parts.empty() && dataset.off[job.whole_files ? 1 : 0]) return std::nullopt;
    job.last = {
        {}, session, whose.second, job.order.epoch(), *index, job.order.cursor(), job.order.size()};
    if (!parts.empty() && dataset.trial[job.whole_files ? 1 : 0] && is_control(*index)) {
      job.order.hand_out(1);
      continue;
    }
    job.order.hand_out(
        static_cast<uint32_t>(std::min<uint64_t>(files_->charge(parts), UINT32_MAX)));
    job.pending.assign(parts.rbegin(), parts.rend());
  }
  return std::nullopt;
}

bool SampleBook::is_ahead(const WantedExtent& wanted) const {
  const auto at = jobs_.find({wanted.session, wanted.dataset});
  return at != jobs_.end() &&
         at->second.order.is_ahead(wanted.epoch, wanted.position, wanted.sample);
}

std::optional<SampleBook::Following> SampleBook::following(uint32_t session,
                                                           uint32_t dataset) const {
  const auto set = datasets_.find(dataset);
  if (set == datasets_.end()) return std::nullopt;
  Following found{set->second.name, set->second.set.samples()};
  if (const auto whose = running(session, dataset)) {
    found.session = whose->session;
    found.epoch = whose->epoch;
  }
  return found;
}

void SampleBook::for_each_ahead(const std::function<void(const Extent&)>& visit) const {
  for (const auto& [key, job] : jobs_) {
    const auto dataset = datasets_.find(key.second);
    if (dataset == datasets_.end()) continue;
    job.order.for_each_ahead([&, &set = dataset->second.set](uint32_t index) {
      for (const Extent& part : set.parts(index)) visit(part);
    });
  }
  for (const auto& [reader, samples] : open_) {
    for (const Open& open : samples) {
      for (const Extent& part : parts(open.dataset, open.index)) visit(part);
    }
  }
}

std::vector<SampleBook::View> SampleBook::views() const {
  std::vector<View> out;
  for (const auto& [id, dataset] : datasets_) {
    View view;
    view.dataset = id;
    view.name = dataset.name;
    view.samples = dataset.set.samples();
    view.known = dataset.set.known();
    bool any = false;
    for (const auto& [key, job] : jobs_) {
      if (key.second != id) continue;
      view.session = key.first;
      view.epoch = job.order.epoch();
      view.order = job.order.size();
      view.taken = job.order.taken();
      view.ahead_bytes = job.order.ahead_bytes();
      out.push_back(view);
      any = true;
    }
    if (!any) out.push_back(view);
  }
  return out;
}

}  // namespace sluice::optimizer
