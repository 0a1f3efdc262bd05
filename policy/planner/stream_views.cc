// What is to be seen of streams: the part of StreamPlanner that status and observers ask.
#include "policy/planner/stream_planner.h"

namespace sluice::policy {

uint64_t StreamPlanner::passes(SessionId id) const {
  const Accounts::Session* session = accounts_.find(id);
  return session == nullptr ? 0 : session->passes;
}

std::vector<StreamView> StreamPlanner::views() const {
  std::vector<StreamView> out;
  for (const auto& [id, file] : files_) {
    for (const Stream& stream : file.tracker.streams()) {
      const auto planned = file.plans.find(stream.id);
      StreamView view;
      view.file = id;
      view.session = stream.session;
      view.readers = static_cast<uint32_t>(stream.readers.size());
      view.position = stream.position;
      view.opened = stream.opened;
      view.rate = stream.rate;
      view.confirmed = stream.confirmed;
      if (planned != file.plans.end()) {
        view.frontier = planned->second.plan.frontier();
        view.target = planned->second.plan.target();
        view.in_flight = planned->second.in_flight;
      }
      out.push_back(view);
    }
  }
  return out;
}

std::vector<ObservedStream> StreamPlanner::observed(FileId id, uint64_t reader) const {
  std::vector<ObservedStream> out;
  const auto at = files_.find(id);
  if (at == files_.end()) return out;
  for (const Stream& stream : at->second.tracker.streams()) {
    const auto planned = at->second.plans.find(stream.id);
    const uint64_t frontier =
        planned == at->second.plans.end() ? 0 : planned->second.plan.frontier();
    out.push_back({stream.position, frontier, stream.rate, stream.confirmed});
  }
  StridePlanner::watch(at->second, reader, &out);
  return out;
}

}  // namespace sluice::policy
