#include "policy/streams/shard_names.h"

#include <charconv>
#include <cstdint>

namespace sluice::policy {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kOf = "-of-";
constexpr size_t kMostDigits = 9;

// The last number of `path` that ends at or before `end` and begins after `floor`.
std::string_view number_before(std::string_view path, size_t floor, size_t end) {
  const size_t last = path.substr(0, end).find_last_of(kDigits);
  if (last == std::string_view::npos || last < floor) return {};
  size_t first = last;
  while (first > floor && kDigits.find(path[first - 1]) != std::string_view::npos) --first;
  return path.substr(first, last + 1 - first);
}

uint64_t value_of(std::string_view digits) {
  uint64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

// The path with another number in the place of `digits`, as wide.
std::string with(std::string_view path, std::string_view digits, uint64_t value) {
  std::string text = std::to_string(value);
  if (digits.front() == '0' && text.size() < digits.size()) {
    text.insert(0, digits.size() - text.size(), '0');
  }
  const auto at = static_cast<size_t>(digits.data() - path.data());
  return std::string(path.substr(0, at)) + text + std::string(path.substr(at + digits.size()));
}

}  // namespace

std::optional<ShardNames> shard_names(std::string_view path) {
  const size_t slash = path.rfind('/');
  const size_t floor = slash == std::string_view::npos ? 0 : slash + 1;
  std::string_view digits = number_before(path, floor, path.size());
  ShardNames out;
  uint64_t last = UINT64_MAX;
  const auto begin = static_cast<size_t>(digits.data() - path.data());
  if (!digits.empty() && begin >= floor + kOf.size() &&
      path.substr(begin - kOf.size(), kOf.size()) == kOf) {
    last = value_of(digits);
    digits = number_before(path, floor, begin - kOf.size());
    out.of_all = true;
  }
  if (digits.empty() || digits.size() > kMostDigits) return std::nullopt;
  const uint64_t number = value_of(digits);
  if (number > 0) out.before = with(path, digits, number - 1);
  if (number < last) out.after = with(path, digits, number + 1);
  if (out.of_all && number <= 1) out.before.clear();
  return out;
}

}  // namespace sluice::policy
