#include "optimizer/services/status.h"

#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "optimizer/io/residency.h"

namespace sluice::optimizer {

using policy::Accounts;
using policy::DeliveryKind;
using policy::ImportanceBook;
using policy::MountQueue;
using policy::policy_info;
using policy::SampleBook;
using policy::StagePlan;
using policy::StorageModel;
using policy::StreamView;
namespace {

using nlohmann::json;

json jobs_of(const SessionMap& sessions) {
  json all = json::array();
  for (const auto& [id, session] : sessions) {
    json job;
    job["session"] = id;
    job["pid"] = session->peer_pid;
    job["command"] = session->command;
    job["processes"] = json::array();
    for (const Process& process : session->processes) {
      if (process.pid != 0) job["processes"].push_back(process.pid);
    }
    job["files"] = session->files;
    job["mappings"] = session->mappings.all.size();
    json metrics;
    const ClientMetrics client = session->client_metrics();
    for (size_t i = 0; i < client.size(); ++i)
      metrics[protocol::kClientMetrics[i].name] = client[i];
    const auto& shared = session->memory.get()->header.metrics;
    for (size_t i = 0; i < protocol::kSessionMetricCount; ++i) {
      metrics[protocol::kSessionMetrics[i].name] = shared[i].load(std::memory_order_relaxed);
    }
    job["metrics"] = std::move(metrics);
    all.push_back(std::move(job));
  }
  return all;
}

void add_files(const Files& files, json* root) {
  static constexpr const char* kStates[] = {"opening", "ready", "off", "closing"};
  json& all = (*root)["files"] = json::array();
  for (const auto& [id, file] : files.all()) {
    all.push_back({{"file", id},
                   {"path", file.path},
                   {"bytes", file.size},
                   {"device", file.device},
                   {"state", kStates[static_cast<size_t>(file.state)]},
                   {"why", file.why},
                   {"in_flight", file.in_flight}});
  }
}

// Streams, datasets and importance.
void add_plans(const Plans& plans, json* root) {
  json& streams = (*root)["streams"] = json::array();
  for (const StreamView& stream : plans.scheduler.streams().views()) {
    streams.push_back({{"file", stream.file},
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
  json& datasets = (*root)["datasets"] = json::array();
  for (const SampleBook::View& view : plans.samples.views()) {
    datasets.push_back({{"dataset", view.dataset},
                        {"name", view.name},
                        {"samples", view.samples},
                        {"known", view.known},
                        {"session", view.session},
                        {"epoch", view.epoch},
                        {"order", view.order},
                        {"taken", view.taken},
                        {"ahead_bytes", view.ahead_bytes}});
  }
  json& importance = (*root)["importance"] = json::array();
  for (const ImportanceBook::View& view : plans.importance.views()) {
    const uint64_t misses =
        view.deliveries.of(DeliveryKind::kMiss) + view.deliveries.of(DeliveryKind::kMissOther);
    importance.push_back({{"session", view.session},
                          {"dataset", view.dataset},
                          {"reported", view.reported},
                          {"refused", view.refused},
                          {"known", view.known},
                          {"epoch", view.epoch},
                          {"selected", view.selected},
                          {"h_hits", view.deliveries.of(DeliveryKind::kHHit)},
                          {"l_exact", view.deliveries.of(DeliveryKind::kLExact)},
                          {"l_substituted", view.deliveries.of(DeliveryKind::kSubstituted)},
                          {"misses", misses},
                          {"broken", view.broken},
                          {"displaced", view.displaced},
                          {"benefit", view.benefit},
                          {"heap_swaps", view.swaps}});
  }
}

json stage_of(const Stage& stage, const StagePlan& plan) {
  if (!stage.exists()) return nullptr;
  const Stage::View& view = stage.view();
  json out{{"folder", stage.folder()},
           {"policy", policy_info(plan.room().policy()).name},
           {"budget_bytes", plan.room().budget()},
           {"used_bytes", plan.table().used()},
           {"ahead_bytes", plan.table().ahead()},
           {"kept_bytes", plan.room().retained()},
           {"copies", view.copies},
           {"fetched_files", view.fetched_files},
           {"fetched_bytes", view.fetched_bytes},
           {"checks", view.checks},
           {"failures", view.failures},
           {"drops", view.drops},
           {"last_failure", view.last_failure},
           {"packed_files", view.packed_files},
           {"packed_bytes", view.packed_bytes},
           {"logged_files", view.logged_files},
           {"logged_bytes", view.logged_bytes},
           {"chunked_files", view.chunked_files},
           {"chunked_bytes", view.chunked_bytes},
           {"mounts", json::array()}};
  if (const std::optional<PackStore::View> packs = stage.disk().packer.view()) {
    out["packs"] = {{"packs", packs->packs},
                    {"samples", packs->samples},
                    {"bytes", packs->bytes},
                    {"useful_bytes", packs->useful_bytes},
                    {"written_bytes", packs->written_bytes},
                    {"read_samples", packs->read_samples},
                    {"read_bytes", packs->read_bytes},
                    {"damaged_packs", packs->damaged_packs},
                    {"adding", packs->adding}};
  }
  if (const std::optional<CopyLog::View> log = stage.disk().log.view()) {
    out["log"] = {
        {"used_bytes", log->used_bytes},       {"written_files", log->written_files},
        {"written_bytes", log->written_bytes}, {"moved_files", log->moved_files},
        {"skipped_files", log->skipped_files}, {"found_files", log->found_files},
        {"missed_files", log->missed_files},   {"chunk_reads", log->chunk_reads},
        {"lone_reads", log->lone_reads},       {"predicted_epochs", log->predicted_epochs},
        {"damaged_files", log->damaged_files}};
  }
  for (const auto& [device, mount] : plan.mounts().all()) {
    if (!policy::CopyMounts::is_storage(device)) continue;
    out["mounts"].push_back({{"device", device},
                             {"depth", mount.model.depth(now_ns())},
                             {"in_flight", mount.in_flight},
                             {"files_per_s", mount.model.bandwidth()},
                             {"latency_ns", mount.model.latency_ns()}});
  }
  return out;
}

json chunks_of(const CopyChunks::View& view, const ChunkDeliveries& deliveries) {
  json out{{"chunks", view.chunks}, {"samples", view.samples},       {"damaged", view.damaged},
           {"reads", view.reads},   {"read_bytes", view.read_bytes}, {"jobs", json::array()}};
  for (const ChunkDeliveries::View& job : deliveries.views()) {
    out["jobs"].push_back({{"session", job.session},
                           {"dataset", job.dataset},
                           {"chunks", job.chunks},
                           {"deliveries", job.counts.deliveries},
                           {"substituted", job.counts.substituted},
                           {"loads", job.counts.loads},
                           {"loaded_samples", job.counts.loaded_samples},
                           {"alone", job.counts.alone},
                           {"gone", job.counts.gone}});
  }
  return out;
}

json mounts_of(const Files& files, const MountQueue& queue) {
  json all = json::array();
  for (const auto& [device, mount] : files.mounts()) {
    json entry{{"device", device},
               {"type", mount.facts.type},
               {"read_ahead_bytes", mount.facts.read_ahead},
               {"off", mount.off}};
    if (const StorageModel* model = queue.model(device)) {
      entry["block_bytes"] = model->block();
      entry["depth"] = model->depth(now_ns());
      entry["in_flight"] = queue.in_flight(device);
      entry["bandwidth_bytes_s"] = model->bandwidth();
      entry["latency_ns"] = model->latency_ns();
      entry["waiting_bytes"] = queue.waiting_bytes(device);
      entry["request_ns"] = static_cast<uint64_t>(model->cost().request_ns());
      entry["request_worth_bytes"] = model->cost().worth();
    }
    all.push_back(std::move(entry));
  }
  return all;
}

}  // namespace

Status::Status(const Service& service, const std::string& socket, const Transfers* transfers,
               const ChunkDeliveries* chunks)
    : Service(service), socket_(socket), transfers_(transfers), chunks_(chunks) {
  base_->dispatcher.add<StatusMessage>(this);
}

void Status::handle(const Peer& peer, const StatusMessage& /*message*/,
                    std::vector<UniqueFd> /*fds*/) {
  sessions_->after_events([this, connection = peer.connection] {
    if (base_->server.connected(connection)) base_->server.send_text(connection, text());
  });
}

std::string Status::text() const {
  const Accounts& accounts = plans_->scheduler.accounts();
  const Settings& settings = base_->settings;
  json root;
  root["version"] = protocol::kVersion;
  root["pid"] = getpid();
  root["socket"] = socket_;
  root["uptime_s"] = static_cast<double>(now_ns() - started_ns_) / 1e9;
  root["linger_s"] = settings.linger;
  root["engine"] = transfers_->engine();
  root["budget"] = {{"bytes", accounts.budget()}, {"outstanding_bytes", accounts.outstanding()}};
  root["features"] = {{"cachestat", !settings.no_cachestat && has_cachestat()},
                      {"pagemap_scan", !settings.no_pagemap_scan && has_pagemap_scan()}};
  root["jobs"] = jobs_of(sessions_->all());
  add_files(*files_, &root);
  add_plans(*plans_, &root);
  root["stage"] = stage_of(*stage_, plans_->stage);
  const CopyChunks::View& chunks = stage_->disk().chunks.view();
  if (chunks.chunks != 0 || !chunks_->views().empty()) root["chunks"] = chunks_of(chunks, *chunks_);
  root["mounts"] = mounts_of(*files_, plans_->scheduler.queue());
  return root.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace sluice::optimizer
