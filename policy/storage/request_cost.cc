#include "policy/storage/request_cost.h"

#include <algorithm>

#include "protocol/page.h"

namespace sluice::policy {
namespace {

constexpr uint64_t kSlotNs = 50'000'000;
constexpr uint64_t kSlotRequests = 32;
constexpr double kDecay = 0.95;      // of the weight of older slots, with each new slot
constexpr double kMicro = 1000;      // nanoseconds
constexpr double kLarge = 16;        // pages: a request this large is taken to cost only its bytes
constexpr double kMostFaster = 16;   // the most by which the fit may exceed the assumed rate
constexpr double kBelieved = 0.002;  // weight of the assumed rate against the measured slots
constexpr uint64_t kMostWorth = 4 << 20;  // bytes

}  // namespace

void RequestCost::add(uint64_t requests, uint64_t bytes, uint64_t ns) {
  slot_requests_ += requests;
  slot_bytes_ += bytes;
  slot_ns_ += ns;
  if (slot_ns_ < kSlotNs || slot_requests_ < kSlotRequests || slot_bytes_ == 0) return;
  fit();
  interrupt();
}

// Least squares. Requests of one size do not separate the cost of a request from that of its bytes:
// then, if they are small, the storage is assumed to be several times as fast as they show, so that
// larger requests are tried, which do separate them.
void RequestCost::fit() {
  const auto r = static_cast<double>(slot_requests_);
  const double b = static_cast<double>(slot_bytes_) / kPage;
  const double t = static_cast<double>(slot_ns_) / kMicro;
  for (double* sum : {&rr_, &rb_, &bb_, &rt_, &bt_}) *sum *= kDecay;
  rr_ += r * r;
  rb_ += r * b;
  bb_ += b * b;
  rt_ += r * t;
  bt_ += b * t;
  fastest_ = std::max(fastest_ * kDecay, b / t);
  const double faster = std::max(kLarge * r / b, 1.0);
  const double believed = 1 / (faster * fastest_);  // microseconds a page
  const double weight = kBelieved * bb_;
  const double of_page =
      (rr_ * (bt_ + weight * believed) - rb_ * rt_) / (rr_ * (bb_ + weight) - rb_ * rb_);
  const double page = std::max(of_page, believed / kMostFaster);
  request_ns_ = std::max((rt_ - page * rb_) / rr_, 0.0) * kMicro;
  byte_ns_ = page * kMicro / kPage;
}

uint64_t RequestCost::worth() const {
  if (byte_ns_ <= 0) return 0;
  return std::min(static_cast<uint64_t>(request_ns_ / byte_ns_), kMostWorth);
}

}  // namespace sluice::policy
