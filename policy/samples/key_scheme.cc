#include "policy/samples/key_scheme.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace sluice::policy {
namespace {

using Kind = KeyScheme::Kind;

constexpr uint64_t kBases[] = {0, 1};
constexpr uint32_t kIntegers[] = {4, 8};  // bytes
constexpr size_t kShownKey = 32;          // bytes of a prefix or suffix in a name

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Digits only; nullopt: not a number, or one of more than 18 digits.
std::optional<uint64_t> number_of(std::string_view text) {
  uint64_t number = 0;
  for (const char c : text) {
    if (!is_digit(c) || number >= 100'000'000'000'000'000) return std::nullopt;
    number = number * 10 + static_cast<uint64_t>(c - '0');
  }
  return text.empty() ? std::nullopt : std::optional(number);
}

// What is between prefix and suffix; empty: nothing, or the key does not have both.
std::string_view between(std::string_view key, std::string_view prefix, std::string_view suffix) {
  if (key.size() <= prefix.size() + suffix.size() || !key.starts_with(prefix) ||
      !key.ends_with(suffix)) {
    return {};
  }
  return key.substr(prefix.size(), key.size() - prefix.size() - suffix.size());
}

bool padded(std::string_view digits) { return digits.size() > 1 && digits[0] == '0'; }

uint64_t integer(std::string_view key, bool big) {
  uint64_t number = 0;
  for (size_t i = 0; i < key.size(); ++i) {
    number = number << 8 | static_cast<uint8_t>(key[big ? i : key.size() - 1 - i]);
  }
  return number;
}

std::optional<uint64_t> number_in(const KeyScheme& scheme, std::string_view key) {
  if (scheme.kind != Kind::kDecimal) {
    if (key.size() != scheme.width) return std::nullopt;
    return integer(key, scheme.kind == Kind::kBig);
  }
  const std::string_view digits = between(key, scheme.prefix, scheme.suffix);
  if (digits.size() < scheme.width || (padded(digits) && digits.size() != scheme.width)) {
    return std::nullopt;
  }
  return number_of(digits);
}

std::string printable(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const char c : text.substr(0, kShownKey)) {
    if (c >= ' ' && c <= '~') {
      out += c;
    } else {
      const auto byte = static_cast<uint8_t>(c);
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out + (text.size() > kShownKey ? "..." : "");
}

class Search {
 public:
  Search(const RecordList& records, uint64_t samples, std::span<const SeenRecord> seen)
      : records_(records), samples_(samples), seen_(seen) {}

  std::vector<KeyScheme> run() {
    // The highest index: a long number occurs in few places of its key.
    const SeenRecord most = *std::max_element(
        seen_.begin(), seen_.end(), [](const auto& a, const auto& b) { return a.index < b.index; });
    for (const uint64_t base : kBases) {
      for (const uint32_t width : kIntegers) {
        offer({Kind::kBig, base, width, {}, {}});
        offer({Kind::kLittle, base, width, {}, {}});
      }
      find_decimals(most, base);
    }
    std::vector<KeyScheme> all(found_.begin(), found_.end());
    if (most.record >= most.index && same_shift(most)) {
      all.push_back({Kind::kRecord, most.record - most.index, 0, {}, {}});
    }
    if (same_record()) all.push_back({Kind::kAlways, most.record, 0, {}, {}});
    return all;
  }

 private:
  bool same_shift(const SeenRecord& first) const {
    return std::all_of(seen_.begin(), seen_.end(), [&](const SeenRecord& one) {
      return one.record - one.index == uint64_t{first.record} - first.index;
    });
  }
  // One sample, seen again and again, says nothing about the others.
  bool same_record() const {
    return std::all_of(seen_.begin(), seen_.end(),
                       [&](const SeenRecord& one) { return one.record == seen_[0].record; }) &&
           std::any_of(seen_.begin(), seen_.end(),
                       [&](const SeenRecord& one) { return one.index != seen_[0].index; });
  }

  // Tries every place in the key where i + base is written, with each number of zeros before it.
  void find_decimals(const SeenRecord& most, uint64_t base) {
    const std::string_view key = records_.key(most.record);
    const std::string number = std::to_string(most.index + base);
    for (size_t at = 0; (at = key.find(number, at)) != std::string_view::npos; ++at) {
      const std::string_view suffix = key.substr(at + number.size());
      for (size_t begin = at;; --begin) {
        try_decimal(key.substr(0, begin), suffix, base);
        if (begin == 0 || key[begin - 1] != '0') break;
      }
    }
  }

  void try_decimal(std::string_view prefix, std::string_view suffix, uint64_t base) {
    size_t shortest = SIZE_MAX;
    size_t width = 0;  // 0: no number was seen with leading zeros
    for (const SeenRecord& one : seen_) {
      const std::string_view digits = between(records_.key(one.record), prefix, suffix);
      if (number_of(digits) != one.index + base) return;
      shortest = std::min(shortest, digits.size());
      if (!padded(digits)) continue;
      if (width != 0 && width != digits.size()) return;
      width = digits.size();
    }
    if (width > shortest) return;
    KeyScheme scheme{Kind::kDecimal, base, 1, std::string(prefix), std::string(suffix)};
    if (width != 0) {
      offer_decimal(scheme, width);
      return;
    }
    // Any width up to `shortest` explains the observations. A width without any padded key predicts
    // nothing that unpadded numbers do not.
    offer_decimal(scheme, 1);
    std::set<size_t> widths;
    for (uint32_t record = 0; record < records_.size() && shortest > 1; ++record) {
      const std::string_view digits = between(records_.key(record), prefix, suffix);
      if (padded(digits) && digits.size() <= shortest && number_of(digits)) {
        widths.insert(digits.size());
      }
    }
    for (const size_t each : widths) offer_decimal(scheme, each);
  }

  // While no number is longer than its field, zeros at the end of the prefix and padding zeros are
  // equivalent.
  void offer_decimal(KeyScheme scheme, size_t width) {
    uint64_t room = 1;  // 10 to the power of width, as far as that matters
    for (size_t i = 0; i < width && room < samples_ + scheme.base; ++i) room *= 10;
    while (samples_ - 1 + scheme.base < room && scheme.prefix.ends_with('0')) {
      scheme.prefix.pop_back();
      ++width;
    }
    scheme.width = static_cast<uint32_t>(width);
    offer(std::move(scheme));
  }

  void offer(KeyScheme scheme) {
    for (const SeenRecord& one : seen_) {
      if (scheme.sample_of(records_, one.record, samples_) != one.index) return;
    }
    found_.insert(std::move(scheme));
  }

  const RecordList& records_;
  const uint64_t samples_;
  const std::span<const SeenRecord> seen_;
  std::set<KeyScheme> found_;
};

}  // namespace

std::optional<uint64_t> KeyScheme::sample_of(const RecordList& records, uint32_t record,
                                             uint64_t samples) const {
  if (kind == Kind::kAlways) return std::nullopt;
  const std::optional<uint64_t> number =
      kind == Kind::kRecord ? record : number_in(*this, records.key(record));
  if (!number || *number < base || *number - base >= samples) return std::nullopt;
  return *number - base;
}

std::string KeyScheme::name(const RecordList& records) const {
  const std::string number = std::to_string(base);
  const std::string from = base == 0 ? "" : " from " + number;
  switch (kind) {
    case Kind::kRecord:
      return base == 0 ? "record i" : "record i + " + number;
    case Kind::kDecimal:
      return "key " + printable(prefix) + (width > 1 ? "%0" + std::to_string(width) + "d" : "%d") +
             printable(suffix) + from;
    case Kind::kBig:
      return "big-endian " + std::to_string(width) + "-byte key" + from;
    case Kind::kLittle:
      return "little-endian " + std::to_string(width) + "-byte key" + from;
    case Kind::kAlways:
      return "always key " + printable(records.key(base));
  }
  return {};
}

std::vector<KeyScheme> schemes_for(const RecordList& records, uint64_t samples,
                                   std::span<const SeenRecord> seen) {
  return Search(records, samples, seen).run();
}

}  // namespace sluice::policy
