#include "policy/streams/tracker.h"

#include <algorithm>

namespace sluice::policy {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;
constexpr uint64_t kMeet = 4 * kMiB;  // streams closer than this are merged
constexpr uint64_t kHandOver = 32 * kMiB;
constexpr uint64_t kRateSpanNs = 30'000'000;      // a measurement takes at least this long
constexpr uint64_t kRateStaleNs = 2'000'000'000;  // after such a pause a new measurement begins

// How far past the end of a stream its next event may begin. Short for an unconfirmed run, or
// random access would look sequential as soon as a few dozen places are remembered. Readers that
// take turns leave gaps of a few records.
uint64_t reach(const Stream& stream, const Access& access) {
  const uint64_t small = std::max<uint64_t>(256 * kKiB, 2 * std::min(access.length, 4 * kMiB));
  if (access.kind == Access::Kind::kTrip) return stream.confirmed ? 16 * kMiB : 2 * kMiB;
  return stream.confirmed ? std::max<uint64_t>(8 * kMiB, 2 * small) : small;
}

uint64_t slack(const Stream& stream, const Access& access) {
  if (stream.confirmed) return 16 * kMiB;
  return access.kind == Access::Kind::kTrip ? 2 * kMiB : 256 * kKiB;
}

uint64_t seen_end(const Access& access) {
  const bool was_read = access.kind == Access::Kind::kRead || access.kind == Access::Kind::kSeen;
  return was_read ? access.offset + access.length : access.offset;
}

}  // namespace

Stream* Tracker::find(uint32_t id) {
  for (Stream& stream : streams_) {
    if (stream.id == id) return &stream;
  }
  return nullptr;
}

Stream* Tracker::match(const Access& access) {
  Stream* best = nullptr;
  uint64_t best_distance = UINT64_MAX;
  for (Stream& stream : streams_) {
    const uint64_t low = stream.position - std::min(stream.position, slack(stream, access));
    if (access.offset < low || access.offset > stream.opened + reach(stream, access)) continue;
    // An event inside of the open cell has distance 0.
    uint64_t distance = 0;
    if (access.offset < stream.position) distance = stream.position - access.offset;
    if (access.offset > stream.opened) distance = access.offset - stream.opened;
    if (distance < best_distance || (distance == best_distance && stream.confirmed)) {
      best = &stream;
      best_distance = distance;
    }
  }
  return best;
}

void Tracker::evict_one(std::vector<uint32_t>* evicted) {
  // Single accesses are evicted before runs, so that a stray access does not displace a run.
  auto victim = std::find_if(streams_.begin(), streams_.end(),
                             [](const Stream& stream) { return !stream.confirmed; });
  if (victim == streams_.end()) victim = streams_.begin();
  if (evicted != nullptr) evicted->push_back(victim->id);
  streams_.erase(victim);
}

Stream* Tracker::begin(const Access& access, std::vector<uint32_t>* evicted) {
  if (streams_.size() >= kMaxStreams) evict_one(evicted);
  if (orphans_ < kOrphanLimit) ++orphans_;
  Stream stream;
  stream.id = next_id_++;
  stream.begin = access.offset;
  stream.position = access.offset;
  stream.opened = access.offset;
  stream.first_ns = access.time_ns;
  stream.mark_ns = access.time_ns;
  stream.mark_position = access.offset;
  streams_.push_back(std::move(stream));
  return &streams_.back();
}

void Tracker::note_reader(Stream& stream, const Access& access) {
  auto& readers = stream.readers;
  const auto known = std::find_if(readers.begin(), readers.end(), [&](const StreamReader& reader) {
    return reader.id == access.reader;
  });
  StreamReader reader{access.reader, 0, 0};
  if (known != readers.end()) {
    reader = *known;
    readers.erase(known);
  } else if (readers.size() >= kMaxStreamReaders) {
    readers.erase(readers.begin());
  }
  reader.position = std::max(reader.position, seen_end(access));
  reader.time_ns = access.time_ns;
  readers.push_back(reader);
}

void Tracker::extend(Stream& stream, const Access& access) {
  const uint64_t position = seen_end(access);
  if (position > stream.position || stream.events == 0) {
    stream.position = position;
    ++stream.advances;
  }
  stream.opened = std::max(stream.opened, access.offset + access.length);
  stream.opened = std::max(stream.opened, stream.position);
  stream.exact = access.kind != Access::Kind::kTrip;
  ++stream.events;
  stream.session = access.session;
  stream.last_reader = access.reader;
  const uint64_t paused = access.time_ns > stream.last_ns ? access.time_ns - stream.last_ns : 0;
  if (stream.last_ns != 0 && paused > kRateStaleNs) {
    stream.mark_ns = access.time_ns;
    stream.mark_position = stream.position;
  }
  stream.last_ns = std::max(stream.last_ns, access.time_ns);
  const uint64_t span = access.time_ns > stream.mark_ns ? access.time_ns - stream.mark_ns : 0;
  if (span >= kRateSpanNs && stream.position > stream.mark_position) {
    const double measured = static_cast<double>(stream.position - stream.mark_position) * 1e9 /
                            static_cast<double>(span);
    stream.rate = stream.rate == 0 ? measured : 0.6 * stream.rate + 0.4 * measured;
    stream.mark_ns = access.time_ns;
    stream.mark_position = stream.position;
  }
  note_reader(stream, access);
}

Tracker::Outcome Tracker::on_access(const Access& access, std::vector<uint32_t>* evicted) {
  Outcome outcome;
  Stream* stream = match(access);
  outcome.begun = stream == nullptr;
  if (stream == nullptr) {
    stream = begin(access, evicted);
  } else {
    const auto at = std::find_if(streams_.begin(), streams_.end(),
                                 [&](const Stream& other) { return &other == stream; });
    streams_.splice(streams_.end(), streams_, at);
  }
  outcome.before = stream->position;
  const uint64_t advances = stream->advances;
  extend(*stream, access);
  if (!outcome.begun && stream->advances > advances) {
    outcome.confirmed = !stream->confirmed;
    stream->confirmed = true;
    if (orphans_ > 0) --orphans_;
  }
  if (stream->confirmed) stream = merge(stream, &outcome, evicted);
  // Once access is known to be random, a stream counts only from its second event on.
  if (random() && !stream->confirmed) return outcome;
  outcome.stream = stream;
  return outcome;
}

// Readers that take turns begin as several streams, since an unconfirmed stream has a short reach.
// Where streams meet they are merged into the one with more events.
Stream* Tracker::merge(Stream* stream, Outcome* outcome, std::vector<uint32_t>* evicted) {
  for (auto at = streams_.begin(); at != streams_.end();) {
    Stream& other = *at;
    const uint64_t low = stream->position - std::min(stream->position, kMeet);
    const bool near = other.position >= low && other.position <= stream->opened + kMeet;
    // Its only reader came from a little behind: it reached a place that was touched before.
    const bool handed_over =
        other.readers.size() == 1 && other.last_reader == stream->last_reader &&
        other.position <= stream->position && stream->position <= other.opened + kHandOver;
    if (&other == stream || !(near || handed_over)) {
      ++at;
      continue;
    }
    if (other.events > stream->events && other.confirmed) {
      outcome->before = other.position;
      outcome->begun = false;
      std::swap(other.id, stream->id);
      std::swap(other.begin, stream->begin);
    }
    stream->position = std::max(stream->position, other.position);
    stream->opened = std::max(stream->opened, other.opened);
    stream->events += other.events;
    stream->advances += other.advances;
    stream->rate = std::max(stream->rate, other.rate);
    stream->mark_position = stream->position;
    stream->mark_ns = stream->last_ns;
    for (const StreamReader& reader : other.readers) {
      const bool known = std::any_of(stream->readers.begin(), stream->readers.end(),
                                     [&](const StreamReader& r) { return r.id == reader.id; });
      if (!known && stream->readers.size() < kMaxStreamReaders) {
        stream->readers.insert(stream->readers.begin(), reader);
      }
    }
    outcome->merged = true;
    if (evicted != nullptr) evicted->push_back(other.id);
    at = streams_.erase(at);
  }
  return stream;
}

void Tracker::on_random(std::vector<uint32_t>* evicted) {
  orphans_ = kOrphanLimit;
  for (auto at = streams_.begin(); at != streams_.end();) {
    if (at->confirmed) {
      ++at;
      continue;
    }
    if (evicted != nullptr) evicted->push_back(at->id);
    at = streams_.erase(at);
  }
}

void Tracker::remove_process(uint32_t pid) {
  for (Stream& stream : streams_) {
    std::erase_if(stream.readers,
                  [pid](const StreamReader& reader) { return reader.id >> 32 == pid; });
  }
}

}  // namespace sluice::policy
