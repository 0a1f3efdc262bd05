// What `sluice status` shows.
#include <nlohmann/json.hpp>

#include "optimizer/core/optimizer.h"
#include "optimizer/io/clock.h"
#include "optimizer/io/residency.h"

namespace sluice::optimizer {

using nlohmann::json;

nlohmann::json Optimizer::stage_status() const {
  const StageKeeper::View& view = stage_.view();
  json out{{"folder", stage_.folder()},
           {"policy", policy_info(stage_plan_.room().policy()).name},
           {"budget_bytes", stage_plan_.room().budget()},
           {"used_bytes", stage_plan_.table().used()},
           {"ahead_bytes", stage_plan_.table().ahead()},
           {"kept_bytes", stage_plan_.room().kept()},
           {"copies", view.copies},
           {"fetched_files", view.fetched_files},
           {"fetched_bytes", view.fetched_bytes},
           {"checks", view.checks},
           {"failures", view.failures},
           {"drops", view.drops},
           {"last_failure", view.last_failure},
           {"packed_files", view.packed_files},
           {"packed_bytes", view.packed_bytes},
           {"mounts", json::array()}};
  if (const std::optional<PackStore::View> view_of_packs = stage_.packs()) {
    const PackStore::View& packs = *view_of_packs;
    out["packs"] = {{"packs", packs.packs},
                    {"samples", packs.samples},
                    {"bytes", packs.bytes},
                    {"useful_bytes", packs.useful_bytes},
                    {"written_bytes", packs.written_bytes},
                    {"read_samples", packs.read_samples},
                    {"read_bytes", packs.read_bytes},
                    {"damaged_packs", packs.damaged_packs},
                    {"adding", packs.adding}};
  }
  for (const auto& [device, mount] : stage_plan_.mounts().all()) {
    out["mounts"].push_back({{"device", device},
                             {"depth", mount.model.depth(now_ns())},
                             {"in_flight", mount.in_flight},
                             {"files_per_s", mount.model.bandwidth()},
                             {"latency_ns", mount.model.latency_ns()}});
  }
  return out;
}

std::string Optimizer::status() const {
  json root;
  root["version"] = protocol::kVersion;
  root["pid"] = getpid();
  root["socket"] = seat_->path();
  root["uptime_s"] = static_cast<double>(now_ns() - started_ns_) / 1e9;
  root["linger_s"] = linger_;
  root["engine"] = engine_->name();
  root["budget"] = {{"bytes", scheduler_.accounts().budget()},
                    {"outstanding_bytes", scheduler_.accounts().outstanding()}};
  root["features"] = {{"cachestat", !no_cachestat_ && has_cachestat()},
                      {"pagemap_scan", !no_pagemap_scan_ && has_pagemap_scan()}};
  root["jobs"] = json::array();
  for (const auto& [id, session] : sessions_) {
    json job;
    job["session"] = id;
    job["pid"] = session->peer_pid;
    job["command"] = session->command;
    job["processes"] = json::array();
    for (const Process& process : session->processes) {
      if (process.pid != 0) job["processes"].push_back(process.pid);
    }
    job["files"] = session->files;
    job["mappings"] = session->mappings.size();
    json metrics;
    const ClientMetrics client = session->client_metrics();
    for (size_t i = 0; i < client.size(); ++i)
      metrics[protocol::kClientMetrics[i].name] = client[i];
    const auto& shared = session->memory.get()->header.metrics;
    for (size_t i = 0; i < protocol::kSessionMetricCount; ++i) {
      metrics[protocol::kSessionMetrics[i].name] = shared[i].load(std::memory_order_relaxed);
    }
    job["metrics"] = std::move(metrics);
    root["jobs"].push_back(std::move(job));
  }
  root["files"] = json::array();
  static constexpr const char* kStates[] = {"opening", "ready", "off", "closing"};
  for (const auto& [id, file] : files_.all()) {
    root["files"].push_back({{"file", id},
                             {"path", file.path},
                             {"bytes", file.size},
                             {"device", file.device},
                             {"state", kStates[static_cast<size_t>(file.state)]},
                             {"why", file.why},
                             {"in_flight", file.in_flight}});
  }
  root["streams"] = json::array();
  for (const StreamView& stream : scheduler_.streams().views()) {
    root["streams"].push_back({{"file", stream.file},
                               {"session", stream.session},
                               {"readers", stream.readers},
                               {"position", stream.position},
                               {"opened", stream.opened},
                               {"frontier", stream.frontier},
                               {"target", stream.target},
                               {"in_flight_bytes", stream.in_flight},
                               {"rate_bytes_s", stream.rate},
                               {"confirmed", stream.confirmed}});
  }
  root["datasets"] = json::array();
  for (const SampleBook::View& view : samples_.views()) {
    root["datasets"].push_back({{"dataset", view.dataset},
                                {"name", view.name},
                                {"samples", view.samples},
                                {"known", view.known},
                                {"session", view.session},
                                {"epoch", view.epoch},
                                {"order", view.order},
                                {"taken", view.taken},
                                {"ahead_bytes", view.ahead_bytes}});
  }
  root["importance"] = importance_status();
  root["stage"] = stage_.exists() ? stage_status() : json(nullptr);
  root["mounts"] = json::array();
  for (const auto& [device, mount] : files_.mounts()) {
    json entry{{"device", device},
               {"type", mount.facts.type},
               {"read_ahead_bytes", mount.facts.read_ahead},
               {"off", mount.off}};
    if (const StorageModel* model = scheduler_.queue().model(device)) {
      entry["block_bytes"] = model->block();
      entry["depth"] = model->depth(now_ns());
      entry["in_flight"] = scheduler_.queue().in_flight(device);
      entry["bandwidth_bytes_s"] = model->bandwidth();
      entry["latency_ns"] = model->latency_ns();
      entry["waiting_bytes"] = scheduler_.queue().waiting_bytes(device);
      entry["request_ns"] = static_cast<uint64_t>(model->cost().request_ns());
      entry["request_worth_bytes"] = model->cost().worth();
    }
    root["mounts"].push_back(std::move(entry));
  }
  return root.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace sluice::optimizer
