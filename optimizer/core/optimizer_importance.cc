// Importance: what jobs say that their samples matter, and which of them an epoch fetches.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "optimizer/core/optimizer.h"
#include "optimizer/io/memory_file.h"

namespace sluice::optimizer {

using protocol::MessageKind;

void Optimizer::on_importance(const Peer& peer, const ImportanceMessage& message,
                              std::vector<UniqueFd> fds) {
  const protocol::Samples& told = message.samples;
  const Session* session = session_of(told.session, told.token);
  if (session == nullptr) {
    server_.refuse(peer.connection, "no such session");
    return;
  }
  const SampleSet* set = samples_.set(told.dataset);
  if (set == nullptr || !samples_.uses(session->id, told.dataset) ||
      set->samples() > ImportanceBook::kMostSamples || fds.size() != 1 ||
      !is_memory(fds.front().get())) {
    server_.refuse(peer.connection, "importance of samples that there are not");
    return;
  }
  const uint32_t job = samples_.origin(session->id);
  bool good = false;
  if (message.kind == MessageKind::kImportance) {
    std::vector<protocol::SampleImportance> values(told.count);
    good = read_memory(fds.front().get(), values.data(), told.bytes);
    for (size_t i = 0; good && i < values.size(); ++i) {
      importance_.report(job, told.dataset, set->samples(), values[i].sample, values[i].value);
    }
  } else if (told.count == set->samples()) {
    const std::vector<bool>& chosen =
        importance_.select(job, told.dataset, set->samples(), told.epoch);
    const std::vector<uint8_t> bytes(chosen.begin(), chosen.end());
    good = write_memory(fds.front().get(), bytes.data(), bytes.size());
  }
  if (good) {
    server_.send(peer.connection, MessageKind::kDone, {});
  } else {
    server_.refuse(peer.connection, "importance that makes no sense");
  }
}

nlohmann::json Optimizer::importance_status() const {
  nlohmann::json all = nlohmann::json::array();
  for (const ImportanceBook::View& view : importance_.views()) {
    all.push_back({{"session", view.job},
                   {"dataset", view.dataset},
                   {"reported", view.reported},
                   {"refused", view.refused},
                   {"known", view.known},
                   {"epoch", view.epoch},
                   {"selected", view.selected}});
  }
  return all;
}

}  // namespace sluice::optimizer
