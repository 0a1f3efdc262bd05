#include "preload/stage/settled.h"

#include <sys/ioctl.h>

#include <atomic>
#include <cerrno>

#include "preload/base/own_descriptor.h"
#include "preload/base/sys.h"
#include "preload/session/client.h"
#include "preload/stage/lookup.h"

namespace sluice::preload {
namespace {

constexpr long kPidfdOpen = 434, kPidfdGetfd = 438;

enum class Queue { kEmpty, kFilled, kUnknown, kForbidden };

// The kernel forbids this process to read the queue: not tried again. Any thread.
constinit std::atomic<bool> g_forbidden{false};

Queue ask_queue(const protocol::Stage& stage) {
  const protocol::StageHeader& header = stage.header;
  // Without an inode that identifies the process, its pid may be reused soon after its death.
  if (header.process_inode == 0 && stage_silent(stage)) return Queue::kUnknown;
  // No handler of this thread may leave by a jump while these descriptors are open.
  const sys::SignalsBlocked blocked;
  const OwnDescriptor process(sys::call(kPidfdOpen, header.process, 0));
  if (sys::failed(process.number())) return Queue::kUnknown;  // dead, or no descriptor is free
  if (header.process_inode != 0 && process.inode() != header.process_inode) {
    return Queue::kUnknown;
  }
  const OwnDescriptor watch(sys::call(kPidfdGetfd, process.number(), header.watch_fd, 0));
  if (watch.number() == -EPERM || watch.number() == -ENOSYS) return Queue::kForbidden;
  int queued = 0;
  if (sys::failed(watch.number()) ||
      sys::call(SYS_ioctl, watch.number(), FIONREAD, sys::word(&queued)) != 0) {
    return Queue::kUnknown;
  }
  return queued == 0 ? Queue::kEmpty : Queue::kFilled;
}

bool ask_optimizer() {
  protocol::Settle body = {};
  return ask_in_session({.kind = protocol::MessageKind::kSettle,
                         .expected = protocol::MessageKind::kDone,
                         .body = &body,
                         .body_size = sizeof body}) == 0;
}

}  // namespace

bool changes_settled(const protocol::Stage& stage) {
  const protocol::StageHeader& header = stage.header;
  if (header.watch_fd < 0) return false;
  if (!g_forbidden.load(std::memory_order_relaxed)) {
    const uint32_t before = header.draining.load(std::memory_order_seq_cst);
    if ((before & 1) != 0) return false;
    const Queue queue = ask_queue(stage);
    if (queue != Queue::kForbidden) {
      return queue == Queue::kEmpty && header.draining.load(std::memory_order_seq_cst) == before;
    }
    g_forbidden.store(true, std::memory_order_relaxed);
  }
  return ask_optimizer();
}

}  // namespace sluice::preload
