#include "optimizer/io/thread_times.h"

#include <charconv>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "optimizer/io/memory.h"

namespace sluice::optimizer {

using policy::ThreadTime;
namespace {

constexpr size_t kMostThreads = 64;

// The number that is the word `index` of a text, from 0.
std::optional<uint64_t> number_at(std::string_view text, int index) {
  for (; index > 0; --index) {
    const size_t space = text.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    text.remove_prefix(space + 1);
  }
  uint64_t number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  return end.ec == std::errc() ? std::optional(number) : std::nullopt;
}

std::optional<ThreadTime> time_of(const std::filesystem::path& folder) {
  // Nanoseconds that it ran, and that it waited for a processor.
  const std::string times = read_text(folder / "schedstat");
  const std::string stat = read_text(folder / "stat");
  const size_t name = stat.rfind(')');  // the name may contain any character
  const auto tid = number_at(stat, 0), ran = number_at(times, 0), queued = number_at(times, 1);
  if (name == std::string::npos || !tid || !ran || !queued) return std::nullopt;
  // After the name: state ppid pgrp session tty tpgid flags minflt cminflt majflt
  const std::string_view rest = std::string_view(stat).substr(name + 1);
  const auto minor = number_at(rest, 8), major = number_at(rest, 10);
  if (!minor || !major) return std::nullopt;
  return ThreadTime{static_cast<uint32_t>(*tid), *minor + *major, *ran + *queued};
}

}  // namespace

std::vector<ThreadTime> thread_times(uint32_t pid) {
  std::vector<ThreadTime> times;
  std::error_code error;
  std::filesystem::directory_iterator threads("/proc/" + std::to_string(pid) + "/task", error);
  while (!error && threads != std::filesystem::directory_iterator() &&
         times.size() < kMostThreads) {
    if (const auto time = time_of(threads->path())) times.push_back(*time);
    threads.increment(error);
  }
  return times;
}

}  // namespace sluice::optimizer
