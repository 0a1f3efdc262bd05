#include "lmdb_tools/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace sluice::lmdb {
namespace {

constexpr uint64_t kBarWidth = 24;

uint64_t part(uint64_t done, uint64_t total, uint64_t of) {
  return total == 0 ? of
                    : static_cast<uint64_t>(static_cast<unsigned __int128>(std::min(done, total)) *
                                            of / total);
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<uint64_t>(std::clamp(std::ceil(seconds), 0.0, 359999.0));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace

std::string human_bytes(uint64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

Progress::Progress(std::string what, uint64_t total, uint64_t done, uint64_t bytes)
    : what_(std::move(what)),
      total_(total),
      first_(done),
      first_bytes_(bytes),
      terminal_(isatty(STDERR_FILENO) == 1),
      begin_(Clock::now()),
      drawn_(begin_),
      tenth_(part(done, total, 10)) {}

Progress::~Progress() {
  if (open_) fmt::print(stderr, "\n");
}

void Progress::update(uint64_t done, uint64_t records, uint64_t bytes) {
  const bool last = done >= total_;
  const auto now = Clock::now();
  if (terminal_) {
    if (!last && open_ && now - drawn_ < std::chrono::milliseconds(100)) return;
  } else {
    const uint64_t tenth = part(done, total_, 10);
    if (tenth == tenth_ || (!last && now - drawn_ < std::chrono::seconds(1))) return;
    tenth_ = tenth;
  }
  drawn_ = now;
  draw(done, records, bytes, last);
}

void Progress::draw(uint64_t done, uint64_t records, uint64_t bytes, bool last) {
  const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
  const double rate = seconds > 0 ? static_cast<double>(bytes - first_bytes_) / seconds : 0;
  const uint64_t made = done - std::min(done, first_);
  const uint64_t left = total_ - std::min(done, total_);
  std::string time = clock_text(seconds);
  if (!last) {
    time = made == 0 ? "?"
                     : clock_text(seconds / static_cast<double>(made) * static_cast<double>(left));
    time += " left";
  }
  const std::string figures =
      fmt::format("{:3} %  {} records  {}  {}/s  {}", part(done, total_, 100), records,
                  human_bytes(bytes), human_bytes(static_cast<uint64_t>(rate)), time);
  if (!terminal_) {
    fmt::print(stderr, "{}: {}\n", what_, figures);
    return;
  }
  const uint64_t filled = part(done, total_, kBarWidth);
  fmt::print(stderr, "\r{} [{}{}] {}\x1b[K", what_, std::string(filled, '#'),
             std::string(kBarWidth - filled, '.'), figures);
  open_ = true;
  if (last) {
    fmt::print(stderr, "\n");
    open_ = false;
  }
}

}  // namespace sluice::lmdb
