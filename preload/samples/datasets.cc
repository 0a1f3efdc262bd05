#include "preload/samples/datasets.h"

#include <atomic>
#include <cerrno>
#include <cstring>

#include "preload/base/lock.h"
#include "preload/base/settings.h"
#include "preload/base/sys.h"
#include "preload/samples/memory_file.h"
#include "preload/session/client.h"
#include "preload/stage/lookup.h"
#include "preload/stage/written.h"
#include "protocol/control.h"
#include "protocol/ring.h"
#include "protocol/sluice.h"

namespace sluice::preload {
namespace {

constexpr uint32_t kMaxDatasets = 64;
constexpr size_t kNameBytes = protocol::kMaxPath;

struct Known {
  uint64_t samples;
  uint64_t used;  // g_uses at the last use: the least recently used has the smallest
  int number;     // 0: free
  char name[kNameBytes];
};

constinit Spinlock g_lock;
constinit Known g_known[kMaxDatasets] = {};  // REQUIRES: g_lock
constinit uint64_t g_uses = 0;               // likewise

// Adds the indices as 32-bit numbers. 0 or a negative errno.
int put(const uint64_t* indices, uint64_t count, MemoryFile& memory) {
  for (uint64_t i = 0; i < count; ++i) {
    if (indices[i] >= protocol::kMaxSamples) return -EINVAL;
    const auto index = static_cast<uint32_t>(indices[i]);
    if (!memory.add(&index, sizeof index)) return -ENOSPC;
  }
  return 0;
}

// The optimizer may no longer know the dataset: the next use of its name declares it again.
void forget(int number) {
  Locked locked(g_lock);
  for (Known& known : g_known) {
    if (known.number == number) known.number = 0;
  }
}

constinit std::atomic<uint32_t> g_asked{0};  // number of the last session that was asked, + 1

// Requests the optimizer's stage, once a session, if files may be staged at all: maps the index, so
// that this process and its fork children find copies.
void want_stage() {
  const Connection* connection = g_connection.load(std::memory_order_acquire);
  if (!g_settings.stage || connection == nullptr) return;
  if (g_asked.exchange(connection->number + 1, std::memory_order_relaxed) ==
      connection->number + 1) {
    return;
  }
  protocol::StageAsked body = {};
  int fd = -1;
  const int error = ask_in_session({.kind = protocol::MessageKind::kStage,
                                    .expected = protocol::MessageKind::kStageKnown,
                                    .body = &body,
                                    .body_size = sizeof body,
                                    .answer_fd = &fd});
  if (error == -ETIMEDOUT || error == -EAGAIN)
    g_asked.store(0, std::memory_order_relaxed);  // again
  if (error != 0 || fd < 0) return;
  if (use_stage(fd)) report_mapped();
  sys::close(fd);
}

int ask_about(const char* name, uint64_t samples, protocol::DatasetKnown* answer) {
  protocol::Dataset body = {0, 0, samples};
  return ask_in_session({.kind = protocol::MessageKind::kDataset,
                         .expected = protocol::MessageKind::kDatasetKnown,
                         .body = &body,
                         .body_size = sizeof body,
                         .text = name,
                         .text_size = strnlen(name, kNameBytes),
                         .answer = answer,
                         .answer_size = sizeof *answer});
}

}  // namespace

int declare_dataset(const char* name, uint64_t samples) {
  if (name == nullptr || samples == 0 || samples > protocol::kMaxSamples) return -EINVAL;
  const size_t length = strnlen(name, kNameBytes);
  if (length == kNameBytes) return -ENAMETOOLONG;
  {
    Locked locked(g_lock);
    for (Known& known : g_known) {
      if (known.number != 0 && known.samples == samples && strcmp(known.name, name) == 0 &&
          session_of_file_lives(static_cast<uint32_t>(known.number))) {
        known.used = ++g_uses;
        return known.number;
      }
    }
  }
  protocol::DatasetKnown answer;
  if (const int error = ask_about(name, samples, &answer); error != 0) return error;
  const int number = static_cast<int>(in_session(answer.dataset));
  want_stage();
  Locked locked(g_lock);
  // A free entry, or the least recently used one: its dataset is declared again at its next use.
  Known* place = &g_known[0];
  for (Known& known : g_known) {
    if (known.number == 0 || !session_of_file_lives(static_cast<uint32_t>(known.number))) {
      place = &known;
      break;
    }
    if (known.used < place->used) place = &known;
  }
  place->samples = samples;
  place->number = number;
  place->used = ++g_uses;
  memcpy(place->name, name, length + 1);
  return number;
}

int located(int dataset) {
  char name[kNameBytes];
  uint64_t samples = 0;
  {
    Locked locked(g_lock);
    for (const Known& known : g_known) {
      if (known.number != dataset || dataset <= 0) continue;
      memcpy(name, known.name, sizeof name);
      samples = known.samples;
    }
  }
  if (samples == 0 || !session_of_file_lives(static_cast<uint32_t>(dataset))) return -ESTALE;
  protocol::DatasetKnown answer;
  const int error = ask_about(name, samples, &answer);
  return error != 0 ? error : static_cast<int>(answer.located);
}

int publish_order(int dataset, uint32_t epoch, uint64_t first, const uint64_t* indices,
                  uint64_t count, uint32_t flags) {
  if (dataset <= 0 || (indices == nullptr && count != 0)) return -EINVAL;
  if ((flags & SLUICE_ORDER_TENTATIVE) != 0 && first != 0) return -EINVAL;
  if (!session_of_file_lives(static_cast<uint32_t>(dataset))) return -ESTALE;
  if (const int error = may_ask(); error != 0) return error;
  MemoryFile memory;
  if (const int error = put(indices, count, memory); error != 0) return error;
  protocol::Samples about = {};
  about.dataset = static_cast<uint32_t>(dataset);
  about.first = first;
  about.count = count;
  about.epoch = epoch;
  about.flags = flags & (SLUICE_ORDER_WHOLE | SLUICE_ORDER_TENTATIVE);
  want_stage();  // again, if the first attempt failed
  const int error = send_samples(protocol::MessageKind::kOrder, about, memory);
  if (error == -EINVAL) forget(dataset);
  return error;
}

void dataset_name(uint32_t id, char* out, size_t size) {
  constexpr uint32_t kMask = (1U << kFileIdBits) - 1;
  const Locked locked(g_lock);
  for (const Known& known : g_known) {
    if (known.number == 0 || (static_cast<uint32_t>(known.number) & kMask) != id) continue;
    const size_t length = strnlen(known.name, size - 1);
    memcpy(out, known.name, length);
    out[length] = '\0';
    return;
  }
}

void datasets_after_fork() { g_lock.reset(); }

}  // namespace sluice::preload
