#include "policy/planner/budget.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>

namespace sluice::policy {
namespace {

constexpr uint64_t kAbsurd = 1ULL << 60;

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.remove_suffix(1);
  return text;
}

}  // namespace

uint64_t parse_limit(std::string_view text) {
  text = trim(text);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value >= kAbsurd) {
    return kUnlimited;
  }
  return value;
}

uint64_t parse_field(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (line.substr(0, key.size()) != key) continue;
    line.remove_prefix(key.size());
    if (line.empty() || (line.front() != ' ' && line.front() != ':')) continue;
    line.remove_prefix(1);
    line = trim(line);
    uint64_t value = 0;
    const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (error != std::errc()) return 0;
    const bool kilo = std::string_view(rest, line.data() + line.size() - rest) == " kB";
    return kilo ? value * 1024 : value;
  }
  return 0;
}

double parse_pressure(std::string_view text) {
  constexpr std::string_view kKey = "some avg10=";
  const size_t at = text.find(kKey);
  return at == std::string_view::npos
             ? 0
             : strtod(std::string(text.substr(at + kKey.size())).c_str(), nullptr);
}

double PressureBrake::next(double pressure) {
  constexpr double kShort = 5;  // percent
  constexpr double kDown = 0.7;
  constexpr double kUp = 1.1;
  constexpr double kLeast = 1.0 / 64;
  share_ = std::clamp(share_ * (pressure >= kShort ? kDown : kUp), kLeast, 1.0);
  return share_;
}

uint64_t memory_left(const MemoryFacts& facts, uint64_t staged) {
  uint64_t left = facts.available;
  for (const CgroupMemory& cgroup : facts.cgroups) {
    if (cgroup.limit == kUnlimited) continue;
    const uint64_t used = cgroup.usage - std::min(cgroup.usage, cgroup.reclaimable);
    left = std::min(left, cgroup.limit - std::min(cgroup.limit, used));
  }
  return left + staged;
}

void MemoryShares::update(const MemoryFacts& facts, uint64_t wish, uint64_t staged) {
  budget_ = budget_bytes(facts, wish, staged);
  constexpr uint64_t kSparedShare = 64;
  const uint64_t left = memory_left(facts, staged);
  stage_most_ = left / 4 * 3;
  spared_ = left / kSparedShare;
  share_ = brake_.next(facts.pressure);
}

uint64_t MemoryShares::stage(uint64_t ahead, uint64_t requested) const {
  const uint64_t usual = budget_ - std::min(budget_ / 2, ahead);
  const uint64_t most = requested != 0 ? std::min(stage_most_, requested) : usual;
  return std::max(std::min(most, spared_),
                  static_cast<uint64_t>(static_cast<double>(most) * share_));
}

uint64_t MemoryShares::cache(uint64_t staged) const {
  return budget_ - std::min(budget_ / 2, staged);
}

uint64_t budget_bytes(const MemoryFacts& facts, uint64_t requested, uint64_t staged) {
  uint64_t budget = memory_left(facts, staged) / 5;
  if (requested != 0) budget = std::min(budget, requested);
  return std::max(budget, kMinBudget);
}

}  // namespace sluice::policy
