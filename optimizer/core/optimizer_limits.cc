// What is done when memory is short: datasets are released, and a session whose work fails ends
// without harm to the others.
#include <algorithm>
#include <cstring>
#include <exception>

#include "optimizer/core/optimizer.h"
#include "optimizer/io/clock.h"
#include "optimizer/io/log.h"

namespace sluice::optimizer {
namespace {

using protocol::MessageKind;

// The first 16 bytes of the body of every message that jobs send, except hello.
struct Whose {
  uint64_t session = 0, token = 0;
};

Whose whose(std::span<const std::byte> packet) {
  protocol::MessageHeader header;
  Whose found;
  if (packet.size() < sizeof header + sizeof found) return found;
  memcpy(&header, packet.data(), sizeof header);
  memcpy(&found, packet.data() + sizeof header, sizeof found);
  return header.kind == MessageKind::kHello ? Whose{} : found;
}

}  // namespace

void Optimizer::relieve(uint64_t more) {
  while (const auto surplus = samples_.surplus(more)) {
    const SampleSet* set = samples_.set(surplus->dataset);
    const auto about = samples_.following(0, surplus->dataset);
    if (surplus->for_good && set != nullptr && about) {
      say(Level::kWarn,
          "{}: not followed: what is known of {} of its {} samples, and their order, take more "
          "than the {} MiB that all datasets may take",
          about->name, set->known(), set->samples(), samples_.most_bytes() >> 20);
    } else if (about) {
      say(Level::kInfo, "{}: given up for datasets that were used since", about->name);
    }
    places_.release(surplus->dataset);
    importance_.forget_dataset(surplus->dataset);
    scheduler_.retention().forget_dataset(surplus->dataset);
    records_.forget(surplus->dataset);
    samples_.release(*surplus);
    orders_new_ = true;
  }
}

void Optimizer::on_packet(const Peer& peer, std::span<const std::byte> packet,
                          std::vector<UniqueFd> fds) {
  const Whose asked = whose(packet);
  const uint32_t sessions = next_session_;
  const Session* session = session_of(asked.session, asked.token);
  const uint32_t id = session != nullptr ? session->id : 0;
  if (guarded(id, [&] { on_message(peer, packet, std::move(fds)); })) return;
  // Removes a session whose creation failed halfway.
  if (next_session_ != sessions && sessions_.count(sessions) == 0) {
    guarded(0, [&] { scheduler_.remove_session(sessions, now_ns()); });
  }
  guarded(0, [&] { server_.refuse(peer.connection, "the optimizer has no memory for this"); });
}

bool Optimizer::guarded(uint32_t session, const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const std::exception& error) {
    try {
      if (session != 0) {
        give_up(session, error.what());
      } else {
        say(Level::kError, "something is left undone: {}", error.what());
      }
    } catch (const std::exception&) {
      if (session != 0) doomed_ = session;  // tick() tries again
    }
  }
  return false;
}

void Optimizer::give_up(uint32_t session, const char* why) {
  say(Level::kError, "session {}: ended, it cannot be served: {}", session, why);
  end_session(session);
}

}  // namespace sluice::optimizer
