#include "preload/stage/session.h"

#include <atomic>
#include <cerrno>

#include "preload/base/settings.h"
#include "preload/base/sys.h"
#include "preload/session/client.h"
#include "preload/stage/lookup.h"
#include "preload/stage/written.h"

namespace sluice::preload {
namespace {

constinit std::atomic<uint32_t> g_asked{0};  // number of the last session that was asked, + 1

}  // namespace

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

}  // namespace sluice::preload
