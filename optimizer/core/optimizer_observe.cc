// Mappings, and observing them by their page tables.
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>

#include "optimizer/core/optimizer.h"
#include "optimizer/io/clock.h"
#include "optimizer/io/log.h"
#include "optimizer/io/memory.h"

namespace sluice::optimizer {
namespace {

constexpr size_t kMaxMappings = 4096;  // of one session
constexpr size_t kMaxObserved = 256;
constexpr uint64_t kFaultsNs = 50 * kMillisecond;  // between two readings

// Major page faults of the process so far.
std::optional<uint64_t> major_faults(uint32_t pid) {
  const std::string stat = read_text("/proc/" + std::to_string(pid) + "/stat");
  const size_t name = stat.rfind(')');  // the name may contain any character
  if (name == std::string::npos) return std::nullopt;
  // After the name: state ppid pgrp session tty tpgid flags minflt cminflt majflt
  constexpr int kField = 10;
  size_t at = name + 1;
  for (int field = 1; field < kField && at != std::string::npos; ++field) {
    at = stat.find(' ', at + 1);
  }
  if (at == std::string::npos) return std::nullopt;
  uint64_t count = 0;
  const char* const digits = stat.c_str() + at + 1;
  if (std::from_chars(digits, stat.c_str() + stat.size(), count).ec != std::errc()) {
    return std::nullopt;
  }
  return count;
}

}  // namespace

// One line per event, in the format that tests/replay reads: a debug log is a recording.
void Optimizer::trace(const char* kind, uint32_t session, const TakenEvent& event) const {
  say(Level::kDebug,
      "event t={} session={} pid={} tid={} kind={} file={} offset={} length={} flags={}",
      event.data.time_ns, session, event.pid, event.data.tid, kind, event.data.file,
      event.data.offset, event.data.length, event.data.flags);
  for (const StreamView& stream : scheduler_.streams().views()) {
    if (stream.file != event.data.file || event.data.offset > stream.opened) continue;
    say(Level::kDebug,
        "stream position={} opened={} frontier={} target={} in_flight={} rate={:.0f}",
        stream.position, stream.opened, stream.frontier, stream.target, stream.in_flight,
        stream.rate);
  }
}

void Optimizer::on_mapped(Session& session, const TakenEvent& event, uint64_t now) {
  forget_mapping(session, event.slot, event.data.address);  // reported twice, or replaced
  if (session.mappings.size() >= kMaxMappings) return;
  session.mappings.push_back(
      {event.slot, event.data.file, event.data.address, event.data.offset, event.data.length});
  scheduler_.streams().on_advised(event.data.file, session.id,
                                  (event.data.flags & protocol::kFlagByPage) != 0);
  if ((event.data.flags & protocol::kFlagObserve) == 0) return;
  if (session.observed.size() >= kMaxObserved) return;
  if (const auto count = major_faults(event.pid)) {
    session.faults.try_emplace(event.pid, Session::Faults{now, *count});
  }
  std::unique_ptr<PageTable> table = open_page_table(event.pid, no_pagemap_scan_);
  if (table == nullptr) {
    say(Level::kWarn, "process {} cannot be observed: {}", event.pid, strerror(errno));
    return;
  }
  session.observed.push_back({event.slot, event.data.file, event.pid, event.data.address,
                              std::move(table),
                              Observer(event.data.address, event.data.offset, event.data.length,
                                       static_cast<uint64_t>(event.pid) << 32, session.id, now)});
}

void Optimizer::forget_mapping(Session& session, uint32_t slot, uint64_t address) {
  std::erase_if(session.mappings, [&](const Mapping& mapping) {
    return mapping.slot == slot && mapping.address == address;
  });
  session.observed.remove_if([&](const ObservedMapping& mapping) {
    return mapping.slot == slot && mapping.address == address;
  });
}

// No hook sees faults in an observed mapping. Each major fault is estimated to wait for one
// request, and all together for no longer than the time between the two readings.
void Optimizer::count_faults(Session& session, const ObservedMapping& mapping, uint64_t now) {
  Session::Faults& faults = session.faults[mapping.pid];
  if (now - faults.looked_ns < kFaultsNs) return;
  const std::optional<uint64_t> count = major_faults(mapping.pid);
  if (!count) return;
  if (faults.looked_ns != 0 && *count > faults.count) {
    const FileEntry* file = files_.find(mapping.file);
    const StorageModel* model = file == nullptr ? nullptr : scheduler_.queue().model(file->device);
    const uint64_t request = model == nullptr ? 0 : model->latency_ns();
    const uint64_t took = now - faults.looked_ns;
    // Request latency unknown: counts all of the time as waiting.
    session.observed_wait_ns +=
        request == 0 ? took : std::min(took, (*count - faults.count) * request);
  }
  faults = {now, *count};
}

uint64_t Optimizer::next_observation_ns() const {
  uint64_t next = UINT64_MAX;
  for (const auto& [id, session] : sessions_) {
    for (const ObservedMapping& mapping : session->observed) {
      next = std::min(next, mapping.observer.next_ns());
    }
  }
  return next;
}

void Optimizer::observe(uint64_t now) {
  if (next_observation_ns() > now) return;
  const std::vector<StreamView> views = scheduler_.streams().views();
  std::vector<ObservedStream> streams;
  std::vector<Access> found;
  for (const auto& [id, session] : sessions_) {
    for (auto at = session->observed.begin(); at != session->observed.end();) {
      ObservedMapping& mapping = *at++;
      if (mapping.observer.next_ns() > now) continue;
      streams.clear();
      for (const StreamView& view : views) {
        if (view.file != mapping.file) continue;
        streams.push_back({view.position, view.frontier, view.rate, view.confirmed});
      }
      found.clear();
      const uint64_t begin = now_ns();
      count_faults(*session, mapping, begin);
      const bool seen = mapping.observer.poll(*mapping.table, streams, begin, &found);
      const uint64_t end = now_ns();
      mapping.observer.spent(end - begin, end);
      // As with read events: accesses in a shuffled order do not predict the next one.
      if (scheduler_.retention().is_shuffled(mapping.file, id)) found.clear();
      for (Access& access : found) {
        access.worker = mapping.pid != session->peer_pid;
        access.waited_ns = session->waited_ns();
        scheduler_.streams().on_access(mapping.file, access);
        if (!logs(Level::kDebug)) continue;
        trace("seen", id,
              {mapping.slot, mapping.pid, {access.offset, access.length, begin, 0, mapping.file}});
      }
      if (!seen) session->observed.erase(std::prev(at));
    }
  }
}

}  // namespace sluice::optimizer
