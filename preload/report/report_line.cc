#include "preload/report/report_line.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "preload/base/log.h"
#include "preload/base/settings.h"
#include "preload/base/sys.h"
#include "preload/data/left_alone.h"
#include "preload/report/report_file.h"

namespace sluice::preload {
namespace {

using protocol::ClientMetric;
using protocol::kClientMetricCount;
using protocol::SessionMetric;

// Bytes that must be read from files that are not prefetched before a line about them is printed.
constexpr uint64_t kWorthALine = 32 << 20;
constexpr uint64_t kWorthAName = 1 << 20;  // if SLUICE_DATASET is given
constexpr double kNs = 1e9;

class Line {
 public:
  __attribute__((format(printf, 2, 3))) void add(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text_ + used_, sizeof text_ - used_, format, arguments);
    va_end(arguments);
    if (length > 0) used_ += static_cast<size_t>(length);
    if (used_ >= sizeof text_) used_ = sizeof text_ - 1;
  }
  const char* text() const { return text_; }

 private:
  char text_[1024] = {};
  size_t used_ = 0;
};

double megabytes(uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }
unsigned long long number(uint64_t value) { return value; }

// "; epochs 2 to 3 of 3 came from memory"
void add_epochs(Line& line) {
  const EpochsInMemory found = epochs_in_memory();
  if (found.in_memory == 0) return;
  // Counted from 1.
  const auto first = number(found.first + 1);
  const auto last = number(found.last + 1);
  const auto epochs = number(found.epochs);
  if (epochs == 1) {
    line.add("; what it read came from memory");
  } else if (found.in_memory == 1) {
    line.add("; epoch %llu of %llu came from memory", first, epochs);
  } else if (last - first + 1 == found.in_memory) {
    line.add("; epochs %llu to %llu of %llu came from memory", first, last, epochs);
  } else {
    line.add("; %llu of %llu epochs came from memory", number(found.in_memory), epochs);
  }
}

// "; 14.8 MB came from packs"
void add_packs(Line& line, const Totals& totals) {
  const uint64_t packed = totals.of(SessionMetric::packed_bytes);
  if (packed != 0) line.add("; %.1f MB came from packs", megabytes(packed));
}

// "; 4000 of 6000 samples needed the originals of their files"
void add_originals(Line& line, const Totals& totals) {
  const uint64_t needed = totals.of(SessionMetric::originals_needed);
  const uint64_t all = totals.of(SessionMetric::sample_hits) +
                       totals.of(SessionMetric::sample_late) +
                       totals.of(SessionMetric::sample_misses);
  if (needed == 0 || needed < all / 20) return;
  line.add("; %llu of %llu samples needed the originals of their files", number(needed),
           number(all));
}

// "; importance: 31000 of 60000 samples chosen, of which 9000 were important ones in memory, ..."
void add_importance(Line& line, const Totals& totals) {
  const auto of = [&](SessionMetric metric) { return number(totals.of(metric)); };
  if (of(SessionMetric::samples_offered) == 0) return;
  line.add(
      "; importance: %llu of %llu samples chosen, of which %llu were important ones in memory, "
      "%llu others in memory, %llu replaced by others, %llu read",
      of(SessionMetric::samples_selected), of(SessionMetric::samples_offered),
      of(SessionMetric::h_hits), of(SessionMetric::l_hits_exact),
      of(SessionMetric::l_hits_substituted), of(SessionMetric::importance_misses));
}

// "; not helped: 2 files (no optimizer answered)", with reasons from the metrics table.
void add_passed(Line& line, const Totals& totals) {
  bool any = false;
  for (uint32_t i = 0; i < kClientMetricCount; ++i) {
    const protocol::MetricInfo& info = protocol::kClientMetrics[i];
    if (strncmp(info.name, "passed_", 7) != 0 || totals.client[i] == 0) continue;
    const char* why = strchr(info.help, ':');
    const bool files = strncmp(info.help, "files", 5) == 0;
    line.add("%s %llu %s (%s)", any ? "," : "; not helped:", number(totals.client[i]),
             files ? "files" : "mappings", why != nullptr ? why + 2 : info.name);
    any = true;
  }
}

// Whether this process is the one that `sluice run` started: its pid begins the job's name.
bool under_run() {
  const char* job = g_settings.job;
  return job != nullptr && strtol(job, nullptr, 10) == sys::pid();
}

// Prints why a job that reads data was not helped at all.
void say_why_not(const Totals& totals) {
  const uint64_t read = left_alone_bytes();
  const bool named = dataset_unmatched() && read >= kWorthAName;
  const bool followed = totals.of(ClientMetric::files_followed) != 0;
  if (!named && read < kWorthALine && !(under_run() && read != 0)) return;
  Line line;
  char kinds[512];
  left_alone_text(kinds, sizeof kinds);
  if (named) {
    line.add("SLUICE_DATASET names nothing that was read: ");
  } else if (followed) {
    line.add("what was followed was in memory already; left alone: ");
  } else {
    line.add("nothing was done: ");
  }
  line.add("%s", kinds);
  say(LogLevel::kWarn, "%s", line.text());
}

bool helped(const Totals& totals) {
  for (const SessionMetric metric : {SessionMetric::precached_bytes, SessionMetric::sample_hits,
                                     SessionMetric::kept_bytes, SessionMetric::samples_offered}) {
    if (totals.of(metric) != 0) return true;
  }
  return false;
}

}  // namespace

bool met_data(const Totals& totals) {
  for (uint32_t i = 0; i < kClientMetricCount; ++i) {
    switch (static_cast<ClientMetric>(i)) {
      case ClientMetric::waited_ns:
      case ClientMetric::loop_waits:
      case ClientMetric::faults_forwarded:
        continue;  // any program may have these
      default:
        if (totals.client[i] != 0) return true;
    }
  }
  return false;
}

void say_line(const Totals& totals) {
  if (!helped(totals) && !met_data(totals)) {
    say_why_not(totals);
    return;
  }
  const double waited = static_cast<double>(totals.of(SessionMetric::stall_ns)) / kNs;
  const double avoided = static_cast<double>(totals.of(SessionMetric::stall_avoided_ns)) / kNs;
  Line line;
  line.add("the job waited %.1f s for data", waited);
  if (avoided >= 0.05) line.add(", about %.1f s less than without Sluice", avoided);
  add_epochs(line);
  add_packs(line, totals);
  const uint64_t unused = totals.of(SessionMetric::precached_unused_bytes);
  if (unused >= totals.of(SessionMetric::precached_bytes) / 20 && megabytes(unused) >= 0.1) {
    line.add("; %.1f of %.1f MB read ahead were not used", megabytes(unused),
             megabytes(totals.of(SessionMetric::precached_bytes)));
  }
  add_originals(line, totals);
  add_importance(line, totals);
  add_passed(line, totals);
  say(LogLevel::kWarn, "%s", line.text());
  if (!helped(totals)) say_why_not(totals);
}

}  // namespace sluice::preload
