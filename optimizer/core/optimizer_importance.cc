// Importance: what jobs say that their samples matter, and which of them an epoch fetches.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "optimizer/core/optimizer.h"
#include "optimizer/io/memory_file.h"

namespace sluice::optimizer {

using protocol::MessageKind;

namespace {

constexpr uint64_t kBlock = 1 << 16;  // values that are read at once

}  // namespace

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
    good = is_as_long(fds.front().get(), told.bytes);
    std::vector<protocol::SampleImportance> values;
    for (uint64_t at = 0; good && at < told.count; at += values.size()) {
      values.resize(std::min(kBlock, told.count - at));
      good = read_memory(fds.front().get(), values.data(), values.size() * sizeof values[0],
                         at * sizeof values[0]);
      for (const protocol::SampleImportance& one : values) {
        if (good) importance_.report(job, told.dataset, set->samples(), one.sample, one.value);
      }
    }
  } else if (told.count == set->samples()) {
    const std::vector<bool> chosen =
        importance_.select(job, told.dataset, set->samples(), told.epoch);
    std::vector<uint8_t> bytes(chosen.size());
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = chosen[i] ? 1 : 0;
    good = !bytes.empty() && write_memory(fds.front().get(), bytes.data(), bytes.size());
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
