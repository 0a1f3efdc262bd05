// Replays recorded events through the optimizer's planning and prints what it decided:
//
//   optimizer-replay FILE.events            prints the plan
//   optimizer-replay --check FILE.events    compares it with FILE.golden; status 1 if they differ
//   optimizer-replay --update FILE.events   rewrites FILE.golden
//
// A file holds set-up lines and events, "key=value" words after the first. Events are what the
// optimizer logs at debug (kind=trip, read, seen, zapped, random), so a log is a recording:
//
//   mount id=1 block=131072 depth=48 latency_us=500 bandwidth=400000000
//   file id=1 size=1073741824 mount=1
//   session id=1 size=0 distance=0 threshold=75 memory=0
//   budget bytes=1073741824
//   cached file=1 offset=0 length=1048576
//   event t=1000000 session=1 pid=7 tid=7 kind=trip file=1 offset=0 length=8388608 flags=0
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "protocol/ring.h"
#include "tests/replay/simulator.h"

namespace {

using namespace sluice::test;
using sluice::policy::FileId;
using sluice::policy::SessionId;
using sluice::policy::SessionMetrics;

constexpr uint64_t kQuietNs = 50'000'000;

using Words = std::map<std::string, std::string>;

uint64_t number(const Words& words, const char* key, uint64_t otherwise = 0) {
  const auto at = words.find(key);
  return at == words.end() ? otherwise : strtoull(at->second.c_str(), nullptr, 10);
}

class Replay {
 public:
  Replay() {
    world_.on_read = [this](uint64_t now, const PlannedRead& read) { on_read(now, read); };
    world_.on_drop = [this](uint64_t now, const PlannedDrop& drop) {
      flush();
      line(now, "drop", drop.file, drop.range, 0);
    };
  }

  // False, and a complaint, if the line means nothing.
  bool take(const std::string& text) {
    std::istringstream stream(text);
    std::string what, word;
    stream >> what;
    Words words;
    while (stream >> word) {
      const size_t equals = word.find('=');
      if (equals != std::string::npos) words[word.substr(0, equals)] = word.substr(equals + 1);
    }
    if (what.empty() || what[0] == '#' || what == "stream") return true;
    if (what == "mount") return mount(words);
    if (what == "event") return event(words);
    const auto id = static_cast<uint32_t>(number(words, "id"));
    if (what == "file") {
      world_.add_file(FileId{id}, number(words, "size"), number(words, "mount", 1));
    } else if (what == "session") {
      world_.scheduler.add_session(SessionId{id},
                                   {number(words, "distance"), number(words, "size"),
                                    static_cast<uint32_t>(number(words, "threshold", 75))},
                                   number(words, "prefetch", 1) != 0, number(words, "memory"));
      sessions_.push_back(SessionId{id});
    } else if (what == "budget") {
      world_.scheduler.accounts().set_budget(number(words, "bytes"));
    } else if (what == "cached") {
      const uint64_t offset = number(words, "offset");
      world_.cache[FileId{static_cast<uint32_t>(number(words, "file"))}].add(
          {offset, offset + number(words, "length")});
    } else {
      return false;
    }
    return true;
  }

  std::string finish() {
    world_.advance_to(world_.now() + 5'000'000'000);
    flush();
    for (const SessionId id : sessions_) {
      world_.scheduler.settle_session(id, world_.now());
      const SessionMetrics& metrics = *world_.scheduler.accounts().metrics(id);
      for (size_t i = 0; i < metrics.size(); ++i) {
        if (metrics[i] == 0) continue;
        out_ << "session " << number(id) << " " << sluice::protocol::kSessionMetrics[i].name << " "
             << metrics[i] << "\n";
      }
    }
    return out_.str();
  }

 private:
  bool mount(const Words& words) {
    Simulator::Storage storage;
    storage.latency_s = static_cast<double>(number(words, "latency_us", 500)) / 1e6;
    storage.bandwidth = static_cast<double>(number(words, "bandwidth", 400000000));
    world_.add_mount(number(words, "id"), static_cast<uint32_t>(number(words, "block", 131072)),
                     static_cast<unsigned>(number(words, "depth", 48)), storage);
    return true;
  }

  bool event(const Words& words) {
    // Recordings begin whenever they were made; the first event is at one millisecond.
    const uint64_t raw = number(words, "t");
    if (!begun_) origin_ = raw - std::min<uint64_t>(raw, 1'000'000);
    begun_ = true;
    const uint64_t now = std::max(world_.now(), raw - std::min(raw, origin_));
    const FileId file{static_cast<uint32_t>(number(words, "file"))};
    const Range range{number(words, "offset"), number(words, "offset") + number(words, "length")};
    const auto at = words.find("kind");
    const std::string kind = at == words.end() ? "" : at->second;
    flush();
    if (kind == "trip" || kind == "read" || kind == "seen") {
      Access access;
      const bool begun = (number(words, "flags") & sluice::protocol::kFlagBegun) != 0;
      access.kind = kind == "trip"   ? Access::Kind::kTrip
                    : kind == "seen" ? Access::Kind::kSeen
                    : begun          ? Access::Kind::kBegun
                                     : Access::Kind::kRead;
      access.offset = range.begin;
      access.length = range.length();
      access.time_ns = now;
      access.reader = number(words, "pid") << 32 | number(words, "tid");
      access.session = SessionId{static_cast<uint32_t>(number(words, "session", 1))};
      access.page = (number(words, "flags") & sluice::protocol::kFlagPage) != 0;
      if (access.length == 0) return false;
      world_.access(file, access);
      return true;
    }
    world_.advance_to(now);
    if (kind == "zapped") {
      world_.scheduler.streams().on_unmapped(file, range);
    } else if (kind == "random") {
      world_.scheduler.streams().on_random(file);
    } else {
      return kind == "mapped" || kind == "unmapped" || kind == "closed";
    }
    return true;
  }

  // Reads that follow each other without a pause are one line.
  void on_read(uint64_t now, const PlannedRead& read) {
    const bool continues = count_ > 0 && file_ == read.file && range_.end == read.range.begin &&
                           now - last_ < kQuietNs;
    if (!continues) {
      flush();
      file_ = read.file;
      range_ = {read.range.begin, read.range.begin};
      first_ = now;
    }
    range_.end = read.range.end;
    last_ = now;
    ++count_;
  }

  void flush() {
    if (count_ > 0) line(first_, "read", file_, range_, count_);
    count_ = 0;
  }

  void line(uint64_t now, const char* what, FileId file, Range range, unsigned count) {
    out_ << now / 1000 << " us " << what << " file " << number(file) << " " << range.begin << " + "
         << range.length();
    if (count > 0) out_ << " in " << count;
    out_ << "\n";
  }

  Simulator world_;
  std::vector<SessionId> sessions_;
  std::ostringstream out_;
  bool begun_ = false;
  uint64_t origin_ = 0, first_ = 0, last_ = 0;
  FileId file_{};
  Range range_;
  unsigned count_ = 0;
};

std::string slurp(const std::string& path, bool* good) {
  std::ifstream in(path);
  *good = static_cast<bool>(in);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

int report_error(const std::string& what) {
  fprintf(stderr, "optimizer-replay: %s\n", what.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc == 3 ? argv[1] : "";
  if (argc < 2 || argc > 3 || (argc == 3 && mode != "--check" && mode != "--update")) {
    return report_error("usage: optimizer-replay [--check|--update] FILE.events");
  }
  const std::string path = argv[argc - 1];
  std::ifstream in(path);
  if (!in) return report_error(path + ": cannot be read");
  Replay replay;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (replay.take(line)) continue;
    std::ostringstream where;
    where << path << ":" << number << ": " << line;
    return report_error(where.str());
  }
  const std::string plan = replay.finish();
  const std::string golden = path.substr(0, path.find_last_of('.')) + ".golden";
  if (mode == "--update") {
    std::ofstream(golden) << plan;
  } else if (mode == "--check") {
    bool good = false;
    if (slurp(golden, &good) != plan || !good) {
      fprintf(stderr, "optimizer-replay: the plan is not that of %s\n", golden.c_str());
      fputs(plan.c_str(), stdout);
      return 1;
    }
  } else {
    fputs(plan.c_str(), stdout);
  }
  return 0;
}
