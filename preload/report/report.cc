#include "preload/report/report.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "preload/base/log.h"
#include "preload/base/own_stack.h"
#include "preload/base/process.h"
#include "preload/base/start_page.h"
#include "preload/base/sys.h"
#include "preload/data/left_alone.h"
#include "preload/files/started.h"
#include "preload/report/report_file.h"
#include "preload/report/report_line.h"
#include "preload/report/report_merge.h"
#include "preload/samples/datasets.h"
#include "preload/samples/places.h"
#include "preload/session/client.h"
#include "preload/session/events.h"
#include "preload/session/waits.h"
#include "preload/stage/leftover.h"

namespace sluice::preload {

namespace {

using protocol::ClientMetric;
using protocol::kClientMetricCount;
using protocol::kSessionMetricCount;
using protocol::SessionMetric;

// Metrics of fork children that had sessions of their own, as DataLoader workers, which end before
// the process that loaded the library and pass their metrics to it here.
struct Ledger {
  std::atomic<uint64_t> client[kClientMetricCount];
  std::atomic<uint64_t> session[kSessionMetricCount];
};

SLUICE_TOUCHED_AT_START constinit Ledger* g_ledger = nullptr;  // shared with fork children
SLUICE_TOUCHED_AT_START constinit std::atomic<bool> g_ended{false};
constinit uint32_t g_inherited = 0;  // sessions inherited at the fork, which the parent counts

template <uint32_t kCount>
void add(uint64_t (&to)[kCount], const std::atomic<uint64_t> (&from)[kCount]) {
  for (uint32_t i = 0; i < kCount; ++i) to[i] += from[i].load(std::memory_order_relaxed);
}

void add_session(Totals& totals, const protocol::Shared& shared) {
  for (const protocol::Slot& slot : shared.slots) {
    if (slot.tail.load(std::memory_order_relaxed) == 0 &&
        slot.pid.load(std::memory_order_relaxed) == 0) {
      continue;  // never used: its pages stay untouched
    }
    add(totals.client, slot.metrics);
  }
  add(totals.client, shared.header.freed);
  add(totals.session, shared.header.metrics);
}

Totals collect() {
  Totals totals;
  for (uint32_t i = g_inherited; i < kMaxConnections; ++i) {
    if (connections()[i].shared != nullptr) add_session(totals, *connections()[i].shared);
  }
  add(totals.client, g_unsent_metrics);
  if (is_root_process() && g_ledger != nullptr) {
    add(totals.client, g_ledger->client);
    add(totals.session, g_ledger->session);
  }
  // The optimizer may have died before it received all waits.
  uint64_t& stall = totals.session[static_cast<uint32_t>(SessionMetric::stall_ns)];
  stall = stall > totals.of(ClientMetric::waited_ns) ? stall : totals.of(ClientMetric::waited_ns);
  return totals;
}

bool counted(const Totals& totals) {
  return met_data(totals) || totals.of(ClientMetric::loop_waits) != 0 ||
         totals.of(SessionMetric::trace_lost) != 0 || totals.of(SessionMetric::sample_hits) != 0 ||
         totals.of(SessionMetric::precached_bytes) != 0;  // for example of staged files
}

void leave_to_root(const Totals& totals) {
  if (g_ledger == nullptr) return;
  for (uint32_t i = 0; i < kClientMetricCount; ++i) {
    g_ledger->client[i].fetch_add(totals.client[i], std::memory_order_relaxed);
  }
  for (uint32_t i = 0; i < kSessionMetricCount; ++i) {
    g_ledger->session[i].fetch_add(totals.session[i], std::memory_order_relaxed);
  }
}

void say_of_off(const Totals& totals) {
  const bool copies = totals.of(SessionMetric::copies_off) != 0;
  const bool records = totals.of(SessionMetric::records_off) != 0;
  if (!copies && !records) return;
  char name[128] = "a dataset";
  dataset_name(static_cast<uint32_t>(totals.of(SessionMetric::off_dataset)), name, sizeof name);
  say(LogLevel::kWarn, "%s%s%s switched off for %s: more time was lost by it than saved",
      copies ? "copying files was" : "", copies && records ? ", and " : "",
      records ? "reading records ahead was" : "", name);
}

void say_of_trace(const Totals& totals) {
  const auto lost = static_cast<unsigned long long>(totals.of(SessionMetric::trace_lost));
  const auto unseen = static_cast<unsigned long long>(totals.of(ClientMetric::events_dropped));
  if (lost == 0 && (unseen == 0 || totals.of(SessionMetric::trace_records) == 0)) return;
  say(LogLevel::kWarn,
      "the trace is not whole: %llu samples could not be written (the optimizer's log says why), "
      "%llu events were lost",
      lost, unseen);
}

// Metrics of several processes are summed, but for these: the last process's nonzero value is used.
bool adds_up(SessionMetric metric) {
  return metric != SessionMetric::benefit_permille && metric != SessionMetric::off_dataset;
}

void write_file(const Totals& totals, const char* path) {
  const EarlierReport earlier(path);
  ReportFile file(path, earlier.replaceable());
  file.number("job", job_number());
  file.number("processes", earlier.number("processes") + 1);
  for (uint32_t i = 0; i < kSessionMetricCount; ++i) {
    const char* name = protocol::kSessionMetrics[i].name;
    const uint64_t own = totals.session[i], others = earlier.number(name);
    const bool add = adds_up(static_cast<SessionMetric>(i));
    file.number(name, add ? own + others : own != 0 ? own : others);
  }
  for (uint32_t i = 0; i < kClientMetricCount; ++i) {
    const char* name = protocol::kClientMetrics[i].name;
    file.number(name, totals.client[i] + earlier.number(name));
  }
  const uint64_t own = history_ns(), others = earlier.number("history_ns");
  file.number("history_ns", own >= others ? own : others);
  if (own >= others) {
    write_history(file);
  } else {
    size_t length = 0;
    const char* text = earlier.history(&length);
    file.members(text, length);
  }
  const int error = file.finish();
  if (error != 0) say(LogLevel::kWarn, "cannot write SLUICE_REPORT=%s (errno %d)", path, error);
}

void end_run() {
  start_ends();
  send_seen_files(true);
  note_faults();
  end_session();
  remove_leftover_stage();
  const Totals totals = collect();
  const bool met = counted(totals);
  // A job that had a session gets a report, even if all of its counters are 0.
  if (!met && left_alone_bytes() == 0 && g_connection.load(std::memory_order_acquire) == nullptr) {
    return;
  }
  if (!is_root_process()) {
    leave_to_root(totals);
    return;
  }
  say_line(totals);
  say_of_off(totals);
  say_of_trace(totals);
  const char* path = g_settings.text[static_cast<size_t>(protocol::Option::kReport)];
  if (path != nullptr && *path != '\0') write_file(totals, path);
  report_callsites();
}

}  // namespace

void prepare_ledger() {
  if (g_ledger != nullptr || g_settings.off) return;
  const long page =
      sys::call(SYS_mmap, 0, static_cast<long>(sizeof(Ledger) + waits_size() + left_alone_size()),
                PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (sys::failed(page)) return;
  g_ledger = reinterpret_cast<Ledger*>(page);
  char* rest = reinterpret_cast<char*>(g_ledger + 1);
  share_waits(rest);
  share_left_alone(rest + waits_size());
}

void report_after_fork() {
  g_ended.store(false, std::memory_order_relaxed);
  while (g_inherited < kMaxConnections && connections()[g_inherited].shared != nullptr) {
    ++g_inherited;
  }
  for (auto& metric : g_unsent_metrics) metric.store(0, std::memory_order_relaxed);
}

void process_ends() {
  if (!g_something_to_report.load(std::memory_order_relaxed) && g_ledger == nullptr) return;
  if (g_settings.off || in_vfork_child()) return;
  if (process_is_new()) process_after_fork();
  if (g_ended.exchange(true, std::memory_order_relaxed)) return;
  on_own_stack(end_run);
}

}  // namespace sluice::preload
