// Requests to record a session's samples in a trace.
#include <string>

#include "optimizer/core/optimizer.h"
#include "optimizer/io/ancestors.h"
#include "optimizer/io/log.h"

namespace sluice::optimizer {
namespace {

using protocol::MessageKind;

}  // namespace

void Optimizer::handle(const Peer& peer, const RecordMessage& message, std::vector<UniqueFd> fds) {
  Session* session = session_of(message.record.session, message.record.token);
  if (session == nullptr || fds.size() != 1 || recordings_.attached(session->id)) {
    server_.refuse(peer.connection, session == nullptr ? "no such session"
                                    : fds.size() != 1  ? "a trace comes as one descriptor"
                                                       : "this session has a trace already");
    return;
  }
  const uint32_t id = session->id;
  const std::vector<uint32_t> parent = ancestors_of(session->peer_pid, 1);
  recordings_.attach(id, session->peer_pid, parent.empty() ? 0 : parent.front(),
                     std::move(fds.front()),
                     [this, id, connection = peer.connection](const std::string& problem) {
                       if (problem.empty()) {
                         server_.send(connection, MessageKind::kDone, {});
                         return;
                       }
                       say(Level::kWarn, "session {}: not recorded: {}", id, problem);
                       server_.refuse(connection, problem);
                     });
}

}  // namespace sluice::optimizer
