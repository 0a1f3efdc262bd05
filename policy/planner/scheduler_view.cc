// The part of the scheduler that reports a session's progress, and recognises its passes over a
// file.
#include <algorithm>

#include "policy/planner/scheduler.h"

namespace sluice::optimizer {
namespace {

constexpr uint64_t kStartShare = 8;  // divisor of the file's size: what counts as its beginning
constexpr uint64_t kPassShare = 2;   // divisor: a pass has read at least this part

}  // namespace

void Scheduler::note_pass(File& file, uint32_t session, Range range, uint64_t in_memory) {
  const auto at = sessions_.find(session);
  if (at == sessions_.end()) return;
  at->second.passed += range.length();
  at->second.passed_ready += std::min(in_memory, range.length());
  file.laps[session].bytes += range.length();
}

// A pass over one file counts as the session's: files that are read in turn make equally many.
void Scheduler::note_begin(File& file, const Access& access) {
  const auto at = sessions_.find(access.session);
  if (at == sessions_.end() || access.offset >= file.size / kStartShare) return;
  Lap& lap = file.laps[access.session];
  if (lap.bytes < file.size / kPassShare) return;
  // The cell that was open at the end sent no further event; its reader has finished it.
  for (const Stream& stream : file.tracker.streams()) {
    if (stream.session != access.session || stream.opened < file.size) continue;
    const Range rest{stream.position, file.size};
    const auto mine = file.ready.find(access.session);
    const uint64_t ready = mine == file.ready.end() ? 0 : mine->second.covered(rest);
    note_pass(file, access.session, rest, ready + file.found.covered(rest));
    break;
  }
  lap.bytes = 0;
  ++lap.passes;
  at->second.passes = std::max(at->second.passes, lap.passes);
}

uint64_t Scheduler::passes(uint32_t session) const {
  const auto at = sessions_.find(session);
  return at == sessions_.end() ? 0 : at->second.passes;
}

SessionView Scheduler::view(uint32_t session, uint64_t now_ns) const {
  SessionView view;
  view.budget = session_budget(session);
  const auto at = sessions_.find(session);
  if (at == sessions_.end()) return view;
  view.passed = at->second.passed;
  view.passed_ready = at->second.passed_ready;
  view.passes = at->second.passes;
  view.outstanding = at->second.outstanding;
  for (const auto& [token, request] : requests_) view.in_flight += request.session == session;
  for (const auto& [id, file] : files_) {
    const auto ready = file.ready.find(session);
    if (ready == file.ready.end() && file.last_session != session) continue;
    if (ready != file.ready.end()) view.ahead += ready->second.bytes();
    view.ahead += file.found.bytes();
    const StorageModel& model = mounts_.at(file.mount).model;
    view.depth = std::max<uint64_t>(view.depth, model.depth(now_ns));
    view.bandwidth = std::max(view.bandwidth, model.bandwidth());
  }
  return view;
}

}  // namespace sluice::optimizer
