#include "optimizer/services/sample_openings.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "optimizer/io/clock.h"

namespace sluice::optimizer {

using policy::SampleFileId;
using policy::SessionId;
namespace {

constexpr uint64_t kFillNs = 10 * kMillisecond;
constexpr size_t kLookedUp = 64;        // files that come next whose names are kept valid
constexpr uint64_t kAgainNs = kSecond;  // a file that was taken, or not held, is opened no sooner

}  // namespace

SampleOpenings::SampleOpenings(const Service& service, Openings* openings)
    : Service(service), openings_(openings) {
  openings_->on_gone.push_back([this](SessionId id, const std::string& path,
                                      const Openings::Gone& how) { gone(id, path, how); });
}

unsigned SampleOpenings::wanted(SessionId id, SampleFileId file) const {
  const auto job = jobs_.find(id);
  if (job == jobs_.end() || !job->second.near.contains(file)) return 0;
  return openings_->held(id) < job->second.pace.window() ? openings_->wanted(id) : 0;
}

void SampleOpenings::look(uint64_t now) {
  if (!plans_->stage.reads_originals()) return;
  if (const uint64_t changes = plans_->samples.orders().changes(); changes != orders_) {
    orders_ = changes;
    for (const auto& [key, order] : plans_->samples.orders().all()) jobs_[key.first].due = true;
  }
  for (auto& [id, job] : jobs_) {
    if (job.due && now >= job.next_ns) fill(id, &job, now);
  }
}

void SampleOpenings::tick(uint64_t now) {
  for (auto& [id, job] : jobs_) {
    std::erase_if(job.not_before_ns, [now](const auto& entry) { return entry.second <= now; });
    job.due |= plans_->samples.orders().taken(id) != job.taken;
  }
}

void SampleOpenings::fill(SessionId id, Job* job, uint64_t now) {
  job->due = false;
  job->next_ns = now + kFillNs;
  job->taken = plans_->samples.orders().taken(id);
  const std::vector<SampleFileId> files =
      plans_->samples.orders().next_files(id, job->pace.window());
  job->near = {files.begin(), files.end()};
  withdraw_read(id, *job);
  look_up_again(id, files);
  size_t open_files = openings_->held(id) + job->opening.size();
  if (open_files >= job->pace.window() || openings_->wanted(id) == 0) return;
  for (const SampleFileId file : files) {
    if (open_files >= job->pace.window()) break;
    const auto later = job->not_before_ns.find(file);
    if (job->opening.contains(file) || !plans_->stage.original_is_ahead(file) ||
        plans_->sample_files.only_locked(file) ||
        (later != job->not_before_ns.end() && now < later->second)) {
      continue;
    }
    std::string path = plans_->sample_files.path(file);
    if (openings_->holds(id, path)) continue;
    open(id, job, file, std::move(path));
    ++open_files;
  }
  openings_->count(id);
}

// A reader that came to its file while that was being opened has opened it itself. Such files would
// be held in the place of those that come next until they expire.
void SampleOpenings::withdraw_read(SessionId id, const Job& job) {
  openings_->withdraw_if(id, [this, &job](const std::string& path) {
    const SampleFileId file = plans_->sample_files.find(path);
    return file != policy::FileTable::kNone && !job.near.contains(file) &&
           !plans_->stage.original_is_ahead(file);
  });
}

// Of the files that come next: a job that stood still, or slowed down, comes to files that were
// opened a while ago, and would look up each of them by itself, one after the other.
void SampleOpenings::look_up_again(SessionId id, std::span<const SampleFileId> files) {
  std::vector<std::string> paths;
  for (const SampleFileId file : files.first(std::min(files.size(), kLookedUp))) {
    paths.push_back(plans_->sample_files.path(file));
  }
  openings_->look_up_again(id, paths, policy::OpenPace::kFreshNs * 3 / 4);
}

void SampleOpenings::open(SessionId id, Job* job, SampleFileId file, std::string path) {
  job->opening.insert(file);
  const auto result = std::make_shared<OpenedFile>();
  const unsigned times = openings_->wanted(id);
  openings_->threads().opening.run(
      id, plans_->stage.mounts().device_of(file, id),
      [result, path, times] { *result = open_ahead(path, times); },
      [this, id, file, path, result] {
        opened(id, file, path, std::move(*result));
        openings_->count(id);
      });
}

void SampleOpenings::opened(SessionId id, SampleFileId file, const std::string& path,
                            OpenedFile result) {
  const auto at = jobs_.find(id);
  if (at == jobs_.end()) {
    openings_->close(id, std::move(result));
    return;
  }
  Job& job = at->second;
  job.opening.erase(file);
  // Its reader may have opened it meanwhile.
  if (!plans_->stage.original_is_ahead(file)) {
    openings_->close(id, std::move(result));
  } else if (openings_->offer(id, path, std::move(result))) {
    return;
  }
  job.not_before_ns[file] = now_ns() + kAgainNs;
}

void SampleOpenings::gone(SessionId id, const std::string& path, const Openings::Gone& gone) {
  const auto at = jobs_.find(id);
  if (at == jobs_.end()) return;
  Job& job = at->second;
  const uint64_t now = now_ns();
  if (gone.how == Openings::How::kExpired) job.pace.expired(now);
  if (gone.how != Openings::How::kTaken) return;
  job.pace.taken(gone.held_ns, now);
  job.due = true;
  const SampleFileId file = plans_->sample_files.find(path);
  // Its sample may not be known to have begun yet.
  if (file != policy::FileTable::kNone) job.not_before_ns[file] = now + kAgainNs;
}

}  // namespace sluice::optimizer
