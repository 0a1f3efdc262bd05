#include "policy/weights/shares.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "protocol/page.h"

namespace sluice::policy {
namespace {

constexpr uint64_t kKiB = 1024;
// Smaller tensors say nothing about shares, and are expected whole, as vectors are.
constexpr uint64_t kLeast = 1024 * kKiB;
constexpr uint64_t kEdge = 2 * Shares::kBlur;  // of a tensor: touched beside its neighbour
constexpr uint64_t kLeftNs = 20'000'000;       // a tensor that was not touched for so long was left
constexpr uint64_t kTurnsNs = 500'000'000;
constexpr unsigned kMostRanks = 64;
constexpr double kSame = 0.001;
constexpr size_t kMostExpected = 512;  // tensors
constexpr double kWhole = 0.9;         // a greater share is all of a tensor

bool is_shared(const Tensor& tensor) { return tensor.rows && tensor.bytes.length() >= kLeast; }

double bytes_of(uint64_t count) { return static_cast<double>(count); }

struct Fraction {
  double part = 0;
  unsigned of = 1;
};

// A multiple of 1/n in [low, high] for the least possible n.
std::optional<Fraction> fraction(double low, double high) {
  for (unsigned n = 1; n <= kMostRanks; ++n) {
    const double nearest = std::ceil(low * n);
    if (nearest <= high * n) return Fraction{nearest, n};
  }
  return std::nullopt;
}

TensorList::const_iterator first_after(const TensorList& tensors, uint64_t offset) {
  return std::partition_point(tensors.begin(), tensors.end(),
                              [&](const Tensor& tensor) { return tensor.bytes.end <= offset; });
}

}  // namespace

std::optional<uint64_t> likely_end(const TensorList& tensors, uint64_t begin) {
  const auto at = first_after(tensors, begin);
  if (at == tensors.end() || !is_shared(*at) || begin < at->bytes.begin + kEdge)
    return std::nullopt;
  const double length = bytes_of(at->bytes.length());
  const double low = bytes_of(begin - at->bytes.begin) / length;
  const auto exact = fraction(low, low + bytes_of(Shares::kBlur + kPage) / length);
  if (!exact || exact->part >= exact->of) return std::nullopt;
  return at->bytes.begin + static_cast<uint64_t>(std::ceil(length * (exact->part + 1) / exact->of));
}

void Shares::touch_again(Open* open, Range part, uint64_t time_ns) {
  if (open->tensor != touched_) {
    std::rotate(returns_ns_.begin(), returns_ns_.begin() + 1, returns_ns_.end());
    returns_ns_.back() = time_ns;
  }
  touched_ = open->tensor;
  open->last_ns = time_ns;
  const Range before = open->touched;
  open->touched = {std::min(before.begin, part.begin), std::max(before.end, part.end)};
  if (!open->judged || open->touched.length() <= before.length() + kBlur) return;
  // It had not been left: nothing that was learned so is to be trusted.
  open->judged = false;
  by_kind_.clear();
  usual_.reset();
  unlearned_ = true;
}

void Shares::touch(const TensorList& tensors, size_t tensor, Range part, uint64_t time_ns) {
  const Range bytes = tensors[tensor].bytes;
  const auto known = std::find_if(open_.begin(), open_.end(),
                                  [&](const Open& one) { return one.tensor == tensor; });
  // What a fault in a neighbour has mapped beside it is no sign that a tensor is read, nor is its
  // first page, which some libraries touch of every tensor.
  const bool apart =
      known == open_.end() || part.begin > known->touched.end || part.end < known->touched.begin;
  const bool edge = part.begin == bytes.begin || part.end == bytes.end;
  if (apart && edge && part.length() <= kEdge && part.length() < bytes.length()) {
    heads_ += part.begin == bytes.begin ? 1 : 0;
    return;
  }
  if (known != open_.end()) {
    touch_again(&*known, part, time_ns);
    return;
  }
  begun_.resize(tensors.size());
  if (begun_[tensor]) return;
  begun_[tensor] = true;
  if (open_.size() == kMostOpen) open_.erase(open_.begin());
  open_.push_back({tensor, part, time_ns, begins_});
  backward_ += begins_ != 0 && tensor < furthest_ ? 1 : 0;
  ++begins_;
  last_ = touched_ = tensor;
  furthest_ = std::max(furthest_, tensor);
}

// Another tensor was begun since. Threads that read a tensor each come back to it: then it takes
// longer until that is certain.
bool Shares::left(const Open& one, uint64_t time_ns) const {
  const bool in_turns = returns_ns_.front() != 0 && returns_ns_.front() + kTurnsNs > time_ns;
  return one.number + 1 < begins_ && one.last_ns + (in_turns ? kTurnsNs : kLeftNs) <= time_ns;
}

// Shares of a whole number of processes are exact; of others, what was seen of the tensor.
Shares::Share Shares::share_of(Range tensor, Range touched) {
  const double length = bytes_of(tensor.length());
  const double begin = bytes_of(touched.begin - tensor.begin) / length;
  const double end = bytes_of(touched.end - tensor.begin) / length;
  const double blur = bytes_of(kBlur + kPage) / length;
  const double edge = bytes_of(kEdge + kPage) / length;
  Share out{begin <= edge ? 0 : begin, end >= 1 - edge ? 1 : end};
  if (const auto exact = fraction(out.begin, begin + blur)) out.begin = exact->part / exact->of;
  if (const auto exact = fraction(end - blur, out.end)) out.end = exact->part / exact->of;
  return out.begin < out.end ? out : Share{begin, end};
}

// True: it differs from what was expected of the kind, and is no exception.
bool Shares::learn(uint32_t kind, Share share) {
  const auto differs = [](const Share& a, const Share& b) {
    return std::abs(a.begin - b.begin) + std::abs(a.end - b.end) > kSame;
  };
  const auto [at, added] = by_kind_.try_emplace(kind, Learned{share, {}});
  if (added) {
    const bool changed = !usual_.has_value() || differs(*usual_, share);
    usual_ = share;
    return changed;
  }
  Learned& known = at->second;
  if (!differs(known.share, share)) {
    known.other.reset();
    return false;
  }
  const bool again = known.other.has_value() && !differs(*known.other, share);
  known.other = share;
  if (again) usual_ = known.share = share;
  return again;
}

bool Shares::judge(const TensorList& tensors, uint64_t time_ns) {
  bool changed = false;
  for (Open& one : open_) {
    const Tensor& tensor = tensors[one.tensor];
    if (one.judged || !is_shared(tensor)) continue;
    const bool whole = one.touched.begin <= tensor.bytes.begin + kEdge &&
                       one.touched.end + kEdge >= tensor.bytes.end;
    if (!whole && !left(one, time_ns)) continue;
    one.judged = true;
    changed |= learn(tensor.kind, share_of(tensor.bytes, one.touched));
  }
  if (!changed) return false;
  partial_ = std::any_of(by_kind_.begin(), by_kind_.end(), [](const auto& entry) {
    return entry.second.share.end - entry.second.share.begin < kWhole;
  });
  return true;
}

bool Shares::on_read(const TensorList& tensors, Range range, uint64_t time_ns) {
  bytes_ += range.length();
  const bool before = unordered();
  auto at = first_after(tensors, range.begin);
  for (; at != tensors.end() && at->bytes.begin < range.end; ++at) {
    if (!is_shared(*at)) continue;
    touch(tensors, static_cast<size_t>(at - tensors.begin()),
          {std::max(range.begin, at->bytes.begin), std::min(range.end, at->bytes.end)}, time_ns);
  }
  const bool judged = judge(tensors, time_ns);
  return std::exchange(unlearned_, false) || judged || before != unordered();
}

std::optional<Range> Shares::guess(const TensorList& tensors) const {
  if (open_.size() != 1) return std::nullopt;
  const Range touched = open_.front().touched;
  const auto end = likely_end(tensors, touched.begin);
  if (!end || *end <= touched.end) return std::nullopt;
  return Range{touched.begin, *end};
}

std::optional<uint64_t> Shares::first_end(const TensorList& tensors) const {
  if (begins_ != 1 || open_.size() != 1) return std::nullopt;
  return tensors[open_.front().tensor].bytes.end + kBeyondFirst;
}

Range Shares::share_in(const Tensor& tensor) const {
  if (!is_shared(tensor)) return tensor.bytes;
  const auto known = by_kind_.find(tensor.kind);
  const Share share = known == by_kind_.end() ? *usual_ : known->second.share;
  const double length = bytes_of(tensor.bytes.length());
  const auto begin = static_cast<uint64_t>(std::floor(share.begin * length));
  const auto end = static_cast<uint64_t>(std::ceil(share.end * length));
  return {tensor.bytes.begin + begin, std::min(tensor.bytes.begin + end, tensor.bytes.end)};
}

std::vector<Range> Shares::expected(const TensorList& tensors, uint64_t from, uint64_t most) const {
  const auto first = first_after(tensors, from);
  const size_t begin = unordered() ? static_cast<size_t>(first - tensors.begin()) : last_;
  std::vector<Range> out;
  for (size_t i = begin; i < std::min(tensors.size(), begin + kMostExpected) && most > 0; ++i) {
    const Range bytes = tensors[i].bytes;
    Range share = share_in(tensors[i]);
    if (share.begin > bytes.begin && 2 * heads_ > begins_) {
      out.push_back({bytes.begin, bytes.begin + 1});
    }
    share.end = share.begin + std::min(share.length(), most);
    most -= share.length();
    out.push_back(share);
  }
  return out;
}

}  // namespace sluice::policy
