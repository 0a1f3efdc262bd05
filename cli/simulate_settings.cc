#include "cli/simulate_settings.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "cli/program.h"
#include "cli/text.h"
#include "protocol/options.h"

namespace sluice::cli {
namespace {

// LCache, Table III: the files of ImageNet-1K have 107.8 KB on average (138 GB, 1.28 million). The
// distribution is not published there; a standard deviation of 0.5 of the logarithm is assumed,
// which puts two thirds of the files between 58 and 157 KB.
constexpr double kImageNetMean = 107.8e3;
constexpr double kImageNetSigma = 0.5;

constexpr uint64_t kMostAccesses = 100'000'000;         // of one epoch, all jobs
constexpr uint64_t kLargestSample = uint64_t{1} << 36;  // bytes
constexpr uint64_t kLargestMemory = uint64_t{1} << 60;  // bytes
constexpr const char* kDefaultPolicies = "lru,minio,belady";

[[noreturn]] void fail(const char* option, const std::string& value, const std::string& reason) {
  throw SimulateFailure(kExitUsage,
                        fmt::format("--{} {}: {}", option, value.empty() ? "''" : value, reason));
}

bool parse(std::string_view text, auto* number) {
  const auto done = std::from_chars(text.data(), text.data() + text.size(), *number);
  return done.ec == std::errc() && done.ptr == text.data() + text.size();
}

// Sets *number if the option is given.
template <typename Number>
void whole(const char* option, const std::string& value, uint64_t low, uint64_t high,
           Number* number) {
  if (value.empty()) return;
  uint64_t given = 0;
  if (!parse(value, &given) || given < low || given > high) {
    fail(option, value, fmt::format("is not a number from {} to {}", low, high));
  }
  *number = static_cast<Number>(given);
}

uint64_t size(const char* option, const std::string& value, uint64_t low, uint64_t high) {
  uint64_t bytes = 0;
  if (!protocol::parse_bytes(value.c_str(), &bytes)) {
    fail(option, value, "is not a size such as 50M");
  }
  if (bytes < low || bytes > high) {
    fail(option, value, fmt::format("is not a size from {} to {}", low, high));
  }
  return bytes;
}

// Parses "2ms" as seconds, if the option is given.
void duration(const char* option, const std::string& value, double* seconds) {
  static constexpr struct {
    std::string_view suffix;
    double seconds;
  } kUnits[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"", 0}};  // 0 needs no unit
  if (value.empty()) return;
  for (const auto& unit : kUnits) {
    if (!value.ends_with(unit.suffix)) continue;
    double number = 0;
    const std::string_view digits(value.data(), value.size() - unit.suffix.size());
    if (!parse(digits, &number) || !(number >= 0 && number <= 1e9)) break;
    if (unit.seconds == 0 && value != "0") break;
    *seconds = number * unit.seconds;
    return;
  }
  fail(option, value, "is not a time such as 2ms");
}

void set_sizes(const std::string& value, Synthetic* synthetic) {
  constexpr std::string_view kFixed = "fixed:", kLogNormal = "lognormal:";
  const char* const option = "size-distribution";
  if (value == "imagenet") {
    synthetic->sigma = kImageNetSigma;
    synthetic->median = kImageNetMean / std::exp(kImageNetSigma * kImageNetSigma / 2);
    return;
  }
  if (value.starts_with(kFixed)) {
    synthetic->sizes = Synthetic::Sizes::kFixed;
    synthetic->bytes = size(option, value.substr(kFixed.size()), 1, kLargestSample);
    return;
  }
  if (value.starts_with(kLogNormal)) {
    const std::vector<std::string> parts = split(value.substr(kLogNormal.size()), ',');
    if (parts.size() == 2 && parse(parts[1], &synthetic->sigma) && synthetic->sigma >= 0 &&
        synthetic->sigma <= 5) {
      synthetic->median =
          static_cast<double>(size(option, parts[0], 1, std::numeric_limits<uint32_t>::max()));
      return;
    }
    fail(option, value, "is not lognormal:MEDIAN,SIGMA with a size and a number from 0 to 5");
  }
  fail(option, value, "is not imagenet, fixed:BYTES or lognormal:MEDIAN,SIGMA");
}

MemorySize memory_size(const std::string& value) {
  MemorySize memory;
  if (!value.ends_with('%')) {
    memory.bytes = size("memory", value, 1, kLargestMemory);
    return memory;
  }
  if (!parse(std::string_view(value).substr(0, value.size() - 1), &memory.share) ||
      !(memory.share > 0 && memory.share <= 100)) {
    fail("memory", value, "is not a share of the dataset above 0 % and up to 100 %");
  }
  memory.share /= 100;
  return memory;
}

// Parses names of a table: a list or "all".
template <typename Info>
void choose(const char* option, const std::string& value, std::span<const Info> table,
            const Info* (*find)(std::string_view), std::vector<const Info*>* chosen) {
  if (value == "all") {
    for (const Info& info : table) chosen->push_back(&info);
    return;
  }
  for (const std::string& name : split(value, ',')) {
    const Info* info = find(name);
    if (info == nullptr) {
      std::string names;
      for (const Info& known : table) names += std::string(known.name) + ", ";
      fail(option, value, fmt::format("'{}' is none of {}all", name, names));
    }
    chosen->push_back(info);
  }
}

Synthetic synthetic(const SimulateOptions& options) {
  Synthetic made;
  whole("samples", options.samples, 1, kMostAccesses, &made.samples);
  whole("epochs", options.epochs, 1, 10000, &made.epochs);
  whole("jobs", options.jobs, 1, 32, &made.jobs);
  whole("seed", options.seed, 0, UINT64_MAX, &made.seed);
  set_sizes(options.sizes.empty() ? "imagenet" : options.sizes, &made);
  if (uint64_t{made.samples} * made.jobs > kMostAccesses) {
    fail("jobs", options.jobs, fmt::format("times --samples is more than {}", kMostAccesses));
  }
  return made;
}

}  // namespace

uint64_t MemorySize::of(uint64_t dataset_bytes) const {
  if (share <= 0) return bytes;
  return static_cast<uint64_t>(std::llround(share * static_cast<double>(dataset_bytes)));
}

SimulateSettings simulate_settings(const SimulateOptions& options) {
  SimulateSettings settings;
  settings.trace = options.trace;
  if (settings.trace.empty()) settings.synthetic = synthetic(options);
  for (const std::string& one : split(options.memory.empty() ? "20%" : options.memory, ',')) {
    settings.memory.push_back(memory_size(one));
  }
  if (options.system.empty()) {
    choose("policy", options.policy.empty() ? kDefaultPolicies : options.policy, policy::policies(),
           policy::find_policy, &settings.policies);
  } else {
    choose("system", options.system, policy::systems(), policy::find_system, &settings.systems);
    if (settings.synthetic.jobs != 1) fail("jobs", options.jobs, "--system plays one job");
  }
  if (!options.drift.empty() &&
      (!parse(options.drift, &settings.drift) || !(settings.drift >= 0 && settings.drift <= 1))) {
    fail("drift", options.drift, "is not a number from 0 to 1");
  }
  Storage& storage = settings.storage;
  duration("latency", options.latency, &storage.latency);
  duration("compute", options.compute, &storage.compute);
  if (!options.bandwidth.empty()) {
    storage.bandwidth =
        static_cast<double>(size("bandwidth", options.bandwidth, 1, kLargestMemory));
  }
  whole("depth", options.depth, 1, 1000000, &storage.depth);
  if (!options.picture.empty() && !options.picture.ends_with(".png")) {
    fail("picture", options.picture, "does not end in .png");
  }
  settings.csv = options.csv;
  settings.decisions = options.decisions;
  settings.picture = options.picture;
  settings.advise = options.advise;
  return settings;
}

}  // namespace sluice::cli
