#include <atomic>
#include <cerrno>
#include <cstring>

#include "preload/samples/datasets.h"
#include "preload/samples/memory_file.h"
#include "preload/session/client.h"
#include "protocol/control.h"
#include "protocol/ring.h"
#include "protocol/siphash.h"

namespace sluice::preload {
namespace {

constinit std::atomic<uint64_t> g_group{0};  // digest that the ranks of one job share; 0: none
constinit std::atomic<uint64_t> g_seed{1};
constinit std::atomic<uint64_t> g_rank{0};  // packed as below; 0: it is no rank

protocol::Samples about_dataset(int dataset) {
  protocol::Samples about = {};
  about.dataset = static_cast<uint32_t>(dataset);
  about.group = g_group.load(std::memory_order_relaxed);
  return about;
}

void set_rank(protocol::Samples* about) {
  const uint64_t rank = g_rank.load(std::memory_order_relaxed);
  about->rank = static_cast<uint32_t>(rank >> 32);
  about->ranks = {static_cast<uint16_t>(rank >> 16), static_cast<uint16_t>(rank)};
}

bool is_dataset(int dataset) {
  return dataset > 0 && session_of_file_lives(static_cast<uint32_t>(dataset));
}

// REQUIRES: count <= kMostDelivered.
int serve_some(int dataset, uint32_t epoch, uint64_t first, uint64_t* samples, uint8_t* how,
               uint64_t count) {
  MemoryFile memory;
  for (uint64_t i = 0; i < count; ++i) {
    const auto sample = static_cast<uint32_t>(samples[i]);
    if (samples[i] > protocol::kDeliverySample) return -EINVAL;
    if (!memory.add(&sample, sizeof sample)) return -ENOSPC;
  }
  protocol::Samples about = about_dataset(dataset);
  about.first = first;
  about.count = count;
  about.epoch = epoch;
  set_rank(&about);
  if (const int error = send_samples(protocol::MessageKind::kDeliver, about, memory); error != 0) {
    return error;
  }
  constexpr uint64_t kTogether = 1024;
  uint32_t decided[kTogether];
  for (uint64_t done = 0; done < count; done += kTogether) {
    const uint64_t some = count - done < kTogether ? count - done : kTogether;
    if (!memory.read(decided, some * sizeof decided[0], done * sizeof decided[0])) return -EIO;
    for (uint64_t i = 0; i < some; ++i) {
      samples[done + i] = decided[i] & protocol::kDeliverySample;
      how[done + i] = static_cast<uint8_t>(decided[i] >> protocol::kDeliveryShift);
    }
  }
  return 0;
}

}  // namespace

// Sends a digest, which is the same in all ranks: the optimizer does not need the name itself.
void become_rank_of(const char* name) {
  constexpr uint64_t kNoSecret[2] = {};
  const uint64_t group = name != nullptr ? protocol::siphash(kNoSecret, name, strlen(name)).low : 0;
  g_group.store(group, std::memory_order_relaxed);
}

void become_rank(uint32_t rank, uint16_t ranks, uint16_t on_host) {
  const uint64_t packed = uint64_t{rank} << 32 | uint64_t{ranks} << 16 | on_host;
  g_rank.store(ranks > 1 ? packed : 0, std::memory_order_relaxed);
}

void select_by_seed(uint64_t seed) { g_seed.store(seed, std::memory_order_relaxed); }

int report_importance(int dataset, const uint64_t* ids, const double* values,
                      const uint32_t* labels, uint64_t count) {
  if ((ids == nullptr || values == nullptr) && count != 0) return -EINVAL;
  if (!is_dataset(dataset)) return dataset > 0 ? -ESTALE : -EINVAL;
  MemoryFile memory;
  uint64_t sent = 0;
  for (uint64_t i = 0; i < count; ++i) {
    if (ids[i] >= protocol::kMaxSamples) continue;  // ignored, as NaN values are
    const protocol::SampleImportance one = {static_cast<uint32_t>(ids[i]),
                                            labels != nullptr ? labels[i] : protocol::kNoLabel,
                                            values[i]};
    if (!memory.add(&one, sizeof one)) return -ENOSPC;
    ++sent;
  }
  protocol::Samples about = about_dataset(dataset);
  about.count = sent;
  return send_samples(protocol::MessageKind::kImportance, about, memory);
}

int select_samples(int dataset, uint32_t epoch, uint8_t* chosen, uint64_t samples) {
  if (chosen == nullptr || samples == 0 || samples > protocol::kMaxSamples) return -EINVAL;
  if (!is_dataset(dataset)) return dataset > 0 ? -ESTALE : -EINVAL;
  MemoryFile memory;
  if (!memory.add(chosen, samples)) return -ENOSPC;
  protocol::Samples about = about_dataset(dataset);
  about.first = g_seed.load(std::memory_order_relaxed);
  about.count = samples;
  about.epoch = epoch;
  set_rank(&about);
  if (const int error = send_samples(protocol::MessageKind::kSelect, about, memory); error != 0) {
    return error;
  }
  return memory.read(chosen, samples) ? 0 : -EIO;
}

int serve_samples(int dataset, uint32_t epoch, uint64_t first, uint64_t* samples, uint8_t* how,
                  uint64_t count) {
  if ((samples == nullptr || how == nullptr) && count != 0) return -EINVAL;
  if (!is_dataset(dataset)) return dataset > 0 ? -ESTALE : -EINVAL;
  for (uint64_t done = 0; done < count; done += protocol::kMostDelivered) {
    const uint64_t some =
        count - done < protocol::kMostDelivered ? count - done : protocol::kMostDelivered;
    const int error = serve_some(dataset, epoch, first + done, samples + done, how + done, some);
    if (error != 0) return error;
  }
  return 0;
}

}  // namespace sluice::preload
