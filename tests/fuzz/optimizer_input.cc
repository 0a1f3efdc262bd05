// Everything that the optimizer reads from a client: control packets, option text, ring contents.
// The first byte chooses which; nothing may crash, hang or trip a sanitizer, and what is accepted
// must hold the promises that the code behind relies on.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

#include "optimizer/control/parse.h"
#include "policy/planner/scheduler.h"
#include "protocol/ring_io.h"

namespace {

using namespace sluice;
using namespace sluice::optimizer;
using policy::Access;
using policy::FileId;
using policy::PlannedDrop;
using policy::PlannedRead;
using policy::Range;
using policy::Residency;
using policy::Scheduler;
using policy::SessionId;

void require(bool good) {
  if (!good) abort();
}

void packet(std::span<const std::byte> bytes) {
  const Message message = parse_packet(bytes);
  if (const auto* bad = std::get_if<BadMessage>(&message)) {
    require(!bad->reason.empty() && bad->reason.find('\n') == std::string::npos);
  }
  if (const auto* file = std::get_if<FileMessage>(&message)) {
    require(file->path.size() <= protocol::kMaxPath);
  }
}

void options(std::string_view text) {
  std::vector<std::string> problems;
  const SessionOptions parsed = parse_options(text, &problems);
  require(parsed.threshold >= 1 && parsed.threshold <= 100);
  require(!parsed.linger || *parsed.linger <= 86400);
  for (const std::string& problem : problems) require(problem.find('\n') == std::string::npos);
}

class Nothing : public Residency {
 public:
  bool known(FileId file) const override { return file != FileId{2}; }
  uint64_t cached(FileId, Range range) override {
    return range.begin % 3 == 0 ? 0 : range.length();
  }
};

// Raw bytes as a slot's ring, taken and handed on as the core does.
void ring(std::span<const std::byte> bytes) {
  static const std::unique_ptr<protocol::Slot> slot = std::make_unique<protocol::Slot>();
  Nothing nothing;
  Scheduler scheduler(&nothing);
  scheduler.accounts().set_budget(64 << 20);
  scheduler.add_session(SessionId{1}, {}, true, 0);
  scheduler.add_session(SessionId{2}, {1 << 20, 8 << 20, 75}, true, 8 << 20);
  scheduler.queue().add(1, 128 << 10, 8);
  for (const FileId file : {FileId{1}, FileId{2}}) {
    scheduler.add_file(file, number(file) * (1ULL << 30) + 77, 1);
    scheduler.file_usable(file, true);
  }
  memset(static_cast<void*>(slot.get()), 0, sizeof *slot);
  memcpy(static_cast<void*>(&slot->ring), bytes.data(), std::min(bytes.size(), sizeof slot->ring));
  const uint64_t entries = bytes.size() / sizeof(protocol::Event) + 1;
  slot->tail.store(entries);
  uint64_t now = 1;
  for (uint64_t i = 0; i < entries && i < protocol::kRingEntries; ++i, now += 100000) {
    // Most fuzzed sequences would be "unfinished": let the rest of the entry count.
    slot->ring[i].sequence.store(i + 1);
    protocol::EventData event;
    if (protocol::take(*slot, event) != protocol::Take::kEvent) {
      protocol::skip(*slot);
      continue;
    }
    const FileId file{event.file % 3};
    const SessionId session{1U + event.flags % 2};
    if (!event_is_sane(event, 1ULL << 30)) continue;
    using protocol::EventKind;
    if (event.kind == EventKind::kTrip || event.kind == EventKind::kRead) {
      Access access;
      access.kind = event.kind == EventKind::kTrip              ? Access::Kind::kTrip
                    : (event.flags & protocol::kFlagBegun) != 0 ? Access::Kind::kBegun
                                                                : Access::Kind::kRead;
      access.offset = event.offset;
      access.length = event.length;
      access.time_ns = event.time_ns;
      access.reader = event.tid;
      access.session = session;
      access.page = (event.flags & protocol::kFlagPage) != 0;
      scheduler.streams().on_access(file, access);
    } else if (event.kind == EventKind::kZapped) {
      scheduler.streams().on_unmapped(file, {event.offset, event.offset + event.length});
    } else if (event.kind == EventKind::kRandom) {
      scheduler.streams().on_random(file);
    }
    std::vector<PlannedRead> reads;
    scheduler.plan(now, &reads);
    require(scheduler.accounts().outstanding() <= scheduler.accounts().budget());
    for (const PlannedRead& read : reads) {
      require(read.range.length() > 0 && read.range.length() <= 1 << 20);
      require(read.range.end <= number(read.file) * (1ULL << 30) + 77);
      scheduler.on_done(read.token, event.tid % 4 == 0 ? 0 : read.range.length(),
                        event.tid % 4 == 0 ? 5 : 0, now + 50000);
    }
    std::vector<PlannedDrop> drops;
    scheduler.drops(now, &drops);
  }
  scheduler.remove_session(SessionId{1}, now);
  scheduler.remove_session(SessionId{2}, now);
  require(scheduler.accounts().outstanding() == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::span<const std::byte> rest(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      packet(rest);
      break;
    case 1:
      options({reinterpret_cast<const char*>(rest.data()), rest.size()});
      break;
    default:
      ring(rest);
      break;
  }
  return 0;
}
