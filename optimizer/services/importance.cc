#include "optimizer/services/importance.h"

#include <algorithm>
#include <utility>

#include "optimizer/io/memory_file.h"
#include "protocol/page.h"

namespace sluice::optimizer {

using policy::BenefitEstimate;
using policy::choose;
using policy::DatasetId;
using policy::Delivery;
using policy::DeliveryKind;
using policy::EpochChoice;
using policy::ImportanceBook;
using policy::ImportanceOptions;
using policy::number;
using policy::PolicyKind;
using policy::RetentionPriorities;
using policy::SampleId;
using policy::SampleSet;
using policy::Store;

using protocol::MessageKind;

namespace {

constexpr uint64_t kBlock = 1 << 16;  // values read at once
// The policies that retain the most important samples: of one job; and of several that share the
// memory, where each reads what the others have read.
constexpr PolicyKind kOneJobPolicy = PolicyKind::kShade;
constexpr PolicyKind kSharedPolicy = PolicyKind::kNeeded;
constexpr uint64_t kNoMount = 0;     // choosers_ access no mount
constexpr size_t kMostWaiting = 64;  // requests that wait for a thread or run on one

bool retains_by_importance(std::optional<PolicyKind> policy) {
  return policy == kOneJobPolicy || policy == kSharedPolicy;
}

}  // namespace

Importance::Importance(const Service& service, ChunkedSamples* chunked, ChunkDeliveries* chunks)
    : Service(service), chunked_(chunked), chunks_(chunks) {
  base_->dispatcher.add<ImportanceMessage>(this);
  base_->loop.wake_by([this](uint64_t now) { return chosen_.empty() ? UINT64_MAX : now; });
}

void Importance::tick() {
  chunks_->tick();
  for (const uint64_t connection : choosing_) {
    base_->server.send(connection, MessageKind::kWorking, {});
  }
}

void Importance::handle(const Peer& peer, const ImportanceMessage& message,
                        std::vector<UniqueFd> fds) {
  const protocol::Samples& request = message.samples;
  Session* session = sessions_->find_or_refuse(peer, request.session, request.token);
  if (session == nullptr) return;
  const DatasetId dataset{request.dataset};
  const SampleSet* set = plans_->samples.set(dataset);
  if (set == nullptr || !plans_->samples.datasets().uses(session->id, dataset) ||
      set->samples() > ImportanceBook::kMostSamples || fds.size() != 1 ||
      !is_memory(fds.front().get())) {
    base_->server.refuse(peer.connection, "importance of unknown samples");
    return;
  }
  const ImportanceBook::Requester requester{job_of(*session, request.group), session->id, peer.pid,
                                            dataset, set->samples()};
  const int fd = fds.front().get();
  bool good = is_as_long(fd, request.bytes);
  if (good && session->options.decides_order() && message.kind != MessageKind::kImportance) {
    chunks_->handle(peer, *session, message, std::move(fds.front()));
    return;
  }
  if (good && message.kind == MessageKind::kSelect) {
    if (select(peer, session, requester, request, std::move(fds.front()))) return;
    good = false;
  }
  good = good &&
         (message.kind == MessageKind::kImportance ? report(requester, request, fd)
                                                   : deliver(*session, requester, request, fd));
  answer(peer.connection, good);
}

void Importance::answer(uint64_t connection, bool good) {
  if (good) {
    base_->server.send(connection, MessageKind::kDone, {});
  } else {
    base_->server.refuse(connection, "invalid importance");
  }
}

// The job of a session: all ranks of one declared group, else all sessions of one origin process.
uint64_t Importance::job_of(const Session& session, uint64_t group) const {
  return group != 0 ? group | uint64_t{1} << 63
                    : number(plans_->samples.orders().origin(session.id));
}

bool Importance::report(const ImportanceBook::Requester& requester,
                        const protocol::Samples& request, int fd) {
  std::vector<protocol::SampleImportance> values;
  for (uint64_t at = 0; at < request.count; at += values.size()) {
    values.resize(std::min(kBlock, request.count - at));
    if (!read_memory(fd, values.data(), values.size() * sizeof values[0], at * sizeof values[0])) {
      return false;
    }
    for (const protocol::SampleImportance& one : values) {
      plans_->importance.report(requester, one.sample, one.value, one.label);
    }
  }
  return true;
}

// Choosing among millions of samples takes seconds: it runs on another thread, and the job is sent
// kWorking meanwhile.
bool Importance::select(const Peer& peer, Session* session,
                        const ImportanceBook::Requester& requester,
                        const protocol::Samples& request, UniqueFd memory) {
  if (request.count != requester.samples) return false;
  // First of all: reading the request takes time, too.
  base_->server.send(peer.connection, MessageKind::kWorking, {});
  std::vector<uint8_t> bytes(request.count);
  if (choosers_.waiting(kNoMount) >= kMostWaiting ||
      !read_memory(memory.get(), bytes.data(), bytes.size())) {
    return false;
  }
  judge_benefit(session, requester);
  look_for_packages(*session, requester.dataset);
  ImportanceOptions options = session->options.importance;
  if (!options.seed_given) options.selection.seed = request.first;
  const std::weak_ptr<EpochChoice> asked =
      plans_->importance.request(requester, request.epoch, options, std::move(bytes));
  if (asked.expired()) return false;
  choosing_.insert(peer.connection);
  choosers_.run(kNoMount, [this, asked, requester, connection = peer.connection,
                           mailbox = base_->loop.mailbox(),
                           fd = std::make_shared<UniqueFd>(std::move(memory))] {
    const std::shared_ptr<EpochChoice> choice = asked.lock();
    if (choice != nullptr) choose(choice.get());
    mailbox->post([this, choice, requester, connection, fd] {
      // The previous epoch is complete once the events of its last reads have been
      // handled.
      sessions_->after_events([this, choice, requester, connection, fd] {
        chosen_.push_back({connection, requester, choice, fd});
      });
    });
  });
  return true;
}

// They are read from the epoch on that begins after chunks were opened and compared with their
// originals: the first epoch, whose samples are all alike, has no use for them. Looked for before
// each epoch of which more is known where samples are.
void Importance::look_for_packages(const Session& session, DatasetId dataset) {
  const SampleSet* const set = plans_->samples.set(dataset);
  if (!session.options.reads_packages() || !stage_->exists() || !session.may_stage() ||
      set == nullptr || plans_->importance.has_packages(dataset) || looking_.contains(dataset)) {
    return;
  }
  uint64_t& known = looked_.try_emplace(dataset, UINT64_MAX).first->second;
  if (std::exchange(known, set->known()) == set->known()) return;
  looking_.insert(dataset);
  const auto look = [this, id = session.id, dataset] {
    const Session* const asking = sessions_->find(id);
    const SampleSet* const samples = plans_->samples.set(dataset);
    if (asking == nullptr || samples == nullptr || !looking_.contains(dataset)) {
      remove_packages(dataset);
      return;
    }
    const ChunkedSamples::Map map = chunked_->map_of(dataset);
    if (map.chunks == nullptr || map.records) {
      looking_.erase(dataset);
      if (!map.records && map.missing != 0 && samples->known() == samples->samples()) {
        chunked_->warn_of_missing(dataset, map, *asking);
      }
      return;
    }
    chunked_->begin(dataset, *asking, [this, dataset, map] {
      if (looking_.erase(dataset) == 0) return;  // it was removed
      plans_->importance.set_packages(dataset, map.chunks, *map.bytes);
    });
  };
  stage_->disk().chunks.use(session.options.cache_dir, CopyChunks::Wanted::kIfAny, look);
}

void Importance::remove_packages(DatasetId dataset) {
  looking_.erase(dataset);
  looked_.erase(dataset);
}

void Importance::remove_dataset(DatasetId dataset) {
  plans_->importance.remove_dataset(dataset);
  remove_packages(dataset);
}

void Importance::begin_epoch() {
  if (chosen_.empty()) return;
  const Chosen next = std::move(chosen_.front());
  chosen_.pop_front();
  choosing_.erase(next.connection);
  if (!base_->server.connected(next.connection)) {
    plans_->importance.drop(next.requester, next.choice);  // the job trains on its own order
    return;
  }
  Session* const session = sessions_->find(next.requester.session);
  bool good =
      session != nullptr && next.choice != nullptr &&
      plans_->importance.begin(next.requester, next.choice, capacity(next.requester.dataset));
  if (good) {
    session->selection.used = true;
    chunked_->begin_epoch({next.requester.session, next.requester.dataset, next.requester.process});
    session->selection.benefits[next.requester.dataset].pause();
    choose_policy();
    const std::vector<uint8_t> bytes(next.choice->chosen.begin(), next.choice->chosen.end());
    good = write_memory(next.memory->get(), bytes.data(), bytes.size());
  }
  answer(next.connection, good);
}

// Jobs that share a dataset share its storage too: each gets a part of the bandwidth.
void Importance::judge_benefit(Session* session, const ImportanceBook::Requester& requester) {
  BenefitEstimate& estimate = session->selection.benefits[requester.dataset];
  const auto jobs =
      std::count_if(sessions_->all().begin(), sessions_->all().end(), [&](const auto& one) {
        return one.second->selection.used &&
               one.second->selection.benefits.count(requester.dataset) != 0;
      });
  const double storage =
      storage_ns(requester.dataset, requester.samples) * static_cast<double>(jobs);
  const std::optional<double> benefit =
      storage > 0 ? estimate.benefit(storage) : std::optional<double>();
  if (benefit) plans_->importance.set_benefit(requester, *benefit);
  estimate.pause();
}

// Time per sample of the dataset when storage is read at full bandwidth, in ns; 0: unknown.
double Importance::storage_ns(DatasetId dataset, uint64_t samples) {
  constexpr uint64_t kChecked = 16;  // samples that represent all
  double sum = 0;
  uint64_t known = 0;
  for (uint64_t i = 0; i < kChecked; ++i) {
    const double sample_ns = plans_->scheduler.store().parallel_ns(
        plans_->samples.parts(dataset, samples * i / kChecked));
    sum += sample_ns;
    known += sample_ns > 0 ? 1 : 0;
  }
  return known == 0 ? 0 : sum / static_cast<double>(known);
}

// Substitutes are decided in advance, by what will be retained and read by then: the job's order
// then is as certain as its plan, and no request is needed while samples are read.
bool Importance::deliver(Session& session, const ImportanceBook::Requester& requester,
                         const protocol::Samples& request, int fd) {
  std::vector<uint32_t> samples(request.count);
  if (!read_memory(fd, samples.data(), request.bytes) ||
      std::any_of(samples.begin(), samples.end(),
                  [&](uint32_t sample) { return sample >= requester.samples; }) ||
      !plans_->importance.follows(requester, request.epoch, request.first, request.count)) {
    return false;
  }
  const Store::Kinds retained{
      stage_->exists() && session.may_stage() &&
          retains_by_importance(plans_->stage.room().policy()),
      retains_by_importance(plans_->scheduler.retention().records().policy(requester.dataset))};
  plans_->importance.drop_absent(requester.dataset, [&](SampleId sample) {
    return plans_->scheduler.store().in_memory(requester.dataset, sample);
  });
  const auto bytes_of = [&](SampleId sample) {
    return plans_->scheduler.store().charge(plans_->samples.parts(requester.dataset, sample),
                                            retained);
  };
  const DatasetId dataset = requester.dataset;
  const auto priority_of = [&](SampleId sample) {
    return plans_->importance.priority_of_brought(dataset, sample);
  };
  for (uint32_t& sample : samples) {
    const Delivery delivery = plans_->importance.deliver(requester, sample, bytes_of);
    const bool misses =
        delivery.kind == DeliveryKind::kMiss || delivery.kind == DeliveryKind::kMissOther;
    chunked_->deliver({requester.session, dataset, requester.process}, delivery.sample,
                      plans_->importance.read_in_package(dataset), misses, priority_of);
    if (delivery.sample != sample) {
      session.history.substituted({sample, delivery.sample}, requester.samples);
    }
    sample = delivery.sample | static_cast<uint32_t>(delivery.kind) << protocol::kDeliveryShift;
  }
  return write_memory(fd, samples.data(), request.bytes);
}

void Importance::choose_policy() {
  std::optional<PolicyKind> requested;
  bool any_selects = false, any_shares = false, all_may = true;
  for (const auto& [id, session] : sessions_->all()) {
    const bool shares = session->selection.used && plans_->importance.shares(id);
    if (session->selection.used && !session->options.policy) {
      plans_->scheduler.accounts().set_policy(id, shares ? kSharedPolicy : kOneJobPolicy);
    }
    if (!session->may_stage()) continue;
    if (session->options.policy) requested = session->options.policy;
    any_selects |= session->selection.used;
    any_shares |= shares;
    all_may &= session->options.selects;
  }
  if (sessions_->empty()) return;
  const PolicyKind before = plans_->stage.room().policy();
  const PolicyKind otherwise = !any_selects || !all_may ? PolicyKind::kAuto
                               : any_shares             ? kSharedPolicy
                                                        : kOneJobPolicy;
  plans_->stage.room().set_policy(requested.value_or(otherwise));
  plans_->orders_changed |=
      plans_->stage.room().policy() != before;  // a new policy does not know them
}

// Bytes of the dataset that may be retained across epochs: what prefetching leaves of the budget.
uint64_t Importance::capacity(DatasetId dataset) {
  if (plans_->scheduler.retention().records().tracks(dataset))
    return plans_->scheduler.retention().records().capacity(dataset);
  const size_t others = plans_->importance.datasets();
  if (!stage_->exists()) return 0;
  const uint64_t beyond = plans_->samples.orders().beyond(dataset);
  return plans_->stage.room().retainable(beyond, now_ns()) / std::max<size_t>(others, 1);
}

void Importance::on_read(const Session& session, const Session& owner, uint32_t process,
                         DatasetId dataset, uint64_t index) {
  chunks_->on_read(owner.id, dataset, index);
  // Forked ranks may share a session; a worker is the child of its rank.
  if (plans_->importance.ranks(owner.id, dataset) > 1 &&
      !plans_->importance.is_rank(owner.id, process, dataset)) {
    process = session.parent_of(process);
  }
  const bool was_retained =
      plans_->scheduler.store().retains(dataset, static_cast<uint32_t>(index));
  for (const RetentionPriorities::SamplePriority& one :
       plans_->importance.on_read(owner.id, process, dataset, index, was_retained)) {
    plans_->scheduler.store().set_importance(dataset, one.sample, one.priority);
  }
}

}  // namespace sluice::optimizer
