#include "preload/samples/datasets.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "preload/lock.h"
#include "preload/session/client.h"
#include "preload/stage/session.h"
#include "preload/sys.h"
#include "protocol/control.h"
#include "protocol/ring.h"

namespace sluice::preload {
namespace {

constexpr uint32_t kMaxDatasets = 64;
constexpr size_t kNameBytes = protocol::kMaxPath;
constexpr size_t kPiece = 1024;  // indices converted at once

struct Known {
  uint64_t samples;
  int number;  // 0: free
  char name[kNameBytes];
};

constinit Spinlock g_lock;
constinit Known g_known[kMaxDatasets] = {};  // REQUIRES: g_lock

// A descriptor of memory that holds the indices as 32-bit numbers, or a negative errno.
long memory_of(const uint64_t* indices, uint64_t count) {
  const long fd = sys::call(SYS_memfd_create, sys::word("sluice-order"), MFD_CLOEXEC);
  if (sys::failed(fd)) return fd;
  uint32_t piece[kPiece];
  for (uint64_t at = 0; at < count;) {
    const uint64_t now = count - at < kPiece ? count - at : kPiece;
    for (uint64_t i = 0; i < now; ++i) {
      if (indices[at + i] >= protocol::kMaxSamples) {
        sys::close(static_cast<int>(fd));
        return -EINVAL;
      }
      piece[i] = static_cast<uint32_t>(indices[at + i]);
    }
    const auto size = static_cast<long>(now * sizeof *piece);
    if (sys::call(SYS_write, fd, sys::word(piece), size) != size) {
      sys::close(static_cast<int>(fd));
      return -ENOSPC;
    }
    at += now;
  }
  return fd;
}

}  // namespace

int declare_dataset(const char* name, uint64_t samples) {
  if (name == nullptr || samples == 0 || samples > protocol::kMaxSamples) return -EINVAL;
  const size_t length = strnlen(name, kNameBytes);
  if (length == kNameBytes) return -ENAMETOOLONG;
  {
    Locked locked(g_lock);
    for (const Known& known : g_known) {
      if (known.number != 0 && known.samples == samples && strcmp(known.name, name) == 0 &&
          session_of_file_lives(static_cast<uint32_t>(known.number))) {
        return known.number;
      }
    }
  }
  protocol::Dataset body = {0, 0, samples};
  protocol::DatasetKnown answer;
  const int error = ask_in_session({.kind = protocol::MessageKind::kDataset,
                                    .expected = protocol::MessageKind::kDatasetKnown,
                                    .body = &body,
                                    .body_size = sizeof body,
                                    .text = name,
                                    .text_size = length,
                                    .answer = &answer,
                                    .answer_size = sizeof answer});
  if (error != 0) return error;
  const int number = static_cast<int>(in_session(answer.dataset));
  want_stage();
  Locked locked(g_lock);
  for (Known& known : g_known) {
    if (known.number != 0 && session_of_file_lives(static_cast<uint32_t>(known.number))) continue;
    known.samples = samples;
    known.number = number;
    memcpy(known.name, name, length + 1);
    break;
  }
  return number;
}

int publish_order(int dataset, uint32_t epoch, uint64_t first, const uint64_t* indices,
                  uint64_t count, bool whole) {
  if (dataset <= 0 || (indices == nullptr && count != 0)) return -EINVAL;
  if (!session_of_file_lives(static_cast<uint32_t>(dataset))) return -ESTALE;
  const long fd = memory_of(indices, count);
  if (sys::failed(fd)) return static_cast<int>(fd);
  protocol::Samples body = {};
  body.first = first;
  body.count = count;
  body.bytes = count * sizeof(uint32_t);
  body.dataset = static_cast<uint32_t>(dataset) & ((1U << kFileIdBits) - 1);
  body.epoch = epoch;
  body.whole = whole ? 1 : 0;
  const int error = ask_in_session({.kind = protocol::MessageKind::kOrder,
                                    .expected = protocol::MessageKind::kDone,
                                    .body = &body,
                                    .body_size = sizeof body,
                                    .fd = static_cast<int>(fd)});
  sys::close(static_cast<int>(fd));
  return error;
}

void datasets_after_fork() { g_lock.reset(); }

}  // namespace sluice::preload
