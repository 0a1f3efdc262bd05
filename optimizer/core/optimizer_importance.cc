// Importance: the values that jobs report for samples, and the samples that an epoch fetches.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "optimizer/core/optimizer.h"
#include "optimizer/io/memory_file.h"

namespace sluice::optimizer {

using protocol::MessageKind;

namespace {

constexpr uint64_t kBlock = 1 << 16;  // values read at once
// The policies that retain the most important samples: of one job; and of several, where each reads
// what the others have read.
constexpr PolicyKind kByImportance = PolicyKind::kShade;
constexpr PolicyKind kOfSeveral = PolicyKind::kNeeded;
constexpr uint64_t kNoMount = 0;     // choosers_ access no mount
constexpr size_t kMostWaiting = 64;  // requests that wait for a thread or run on one

bool by_importance(std::optional<PolicyKind> policy) {
  return policy == kByImportance || policy == kOfSeveral;
}

}  // namespace

void Optimizer::handle(const Peer& peer, const ImportanceMessage& message,
                       std::vector<UniqueFd> fds) {
  const protocol::Samples& request = message.samples;
  Session* session = session_or_refuse(peer, request.session, request.token);
  if (session == nullptr) return;
  const SampleSet* set = samples_.set(request.dataset);
  if (set == nullptr || !samples_.datasets().uses(session->id, request.dataset) ||
      set->samples() > ImportanceBook::kMostSamples || fds.size() != 1 ||
      !is_memory(fds.front().get())) {
    server_.refuse(peer.connection, "importance of samples that there are not");
    return;
  }
  const ImportanceBook::Who who{job_of(*session, request.group), session->id, peer.pid,
                                request.dataset, set->samples()};
  const int fd = fds.front().get();
  bool good = is_as_long(fd, request.bytes);
  if (good && message.kind == MessageKind::kSelect) {
    if (select(peer, session, who, request, std::move(fds.front()))) return;
    good = false;
  }
  good = good && (message.kind == MessageKind::kImportance ? take_importance(who, request, fd)
                                                           : serve(*session, who, request, fd));
  answer_importance(peer.connection, good);
}

void Optimizer::answer_importance(uint64_t connection, bool good) {
  if (good) {
    server_.send(connection, MessageKind::kDone, {});
  } else {
    server_.refuse(connection, "importance that makes no sense");
  }
}

// The job of a session: all ranks of one declared group, else all sessions of one origin process.
uint64_t Optimizer::job_of(const Session& session, uint64_t group) const {
  return group != 0 ? group | uint64_t{1} << 63 : samples_.orders().origin(session.id);
}

bool Optimizer::take_importance(const ImportanceBook::Who& who, const protocol::Samples& request,
                                int fd) {
  std::vector<protocol::SampleImportance> values;
  for (uint64_t at = 0; at < request.count; at += values.size()) {
    values.resize(std::min(kBlock, request.count - at));
    if (!read_memory(fd, values.data(), values.size() * sizeof values[0], at * sizeof values[0])) {
      return false;
    }
    for (const protocol::SampleImportance& one : values) {
      importance_.report(who, one.sample, one.value, one.label);
    }
  }
  return true;
}

// Choosing among millions of samples takes seconds: it runs on another thread, and the job is sent
// kWorking meanwhile.
bool Optimizer::select(const Peer& peer, Session* session, const ImportanceBook::Who& who,
                       const protocol::Samples& request, UniqueFd memory) {
  if (request.count != who.samples) return false;
  // First of all: reading the request takes time, too.
  server_.send(peer.connection, MessageKind::kWorking, {});
  std::vector<uint8_t> bytes(request.count);
  if (choosers_.waiting(kNoMount) >= kMostWaiting ||
      !read_memory(memory.get(), bytes.data(), bytes.size())) {
    return false;
  }
  judge_benefit(session, who);
  ImportanceOptions options = session->options.importance;
  if (!options.seed_given) options.selection.seed = request.first;
  const std::weak_ptr<EpochChoice> asked =
      importance_.ask(who, request.epoch, options, std::move(bytes));
  if (asked.expired()) return false;
  choosing_.insert(peer.connection);
  choosers_.run(kNoMount, [this, asked, who, connection = peer.connection, mailbox = mailbox_,
                           fd = std::make_shared<UniqueFd>(std::move(memory))] {
    const std::shared_ptr<EpochChoice> choice = asked.lock();
    if (choice != nullptr) choose(choice.get());
    mailbox->post([this, choice, who, connection, fd] {
      // The previous epoch is complete once the events of its last reads have been handled.
      after_events([this, choice, who, connection, fd] {
        chosen_.push_back({connection, who, choice, fd});
      });
    });
  });
  return true;
}

// One per loop iteration: short requests of other jobs are handled in between.
void Optimizer::begin_epoch() {
  if (chosen_.empty()) return;
  const Chosen next = std::move(chosen_.front());
  chosen_.pop_front();
  choosing_.erase(next.connection);
  if (!server_.connected(next.connection)) {
    importance_.drop(next.who, next.choice);  // the job trains on its own order
    return;
  }
  const auto session = sessions_.find(next.who.session);
  bool good = session != sessions_.end() && next.choice != nullptr &&
              importance_.begin(next.who, next.choice, importance_capacity(next.who.dataset));
  if (good) {
    session->second->selects = true;
    session->second->benefits[next.who.dataset].pause();
    choose_policy();
    const std::vector<uint8_t> bytes(next.choice->chosen.begin(), next.choice->chosen.end());
    good = write_memory(next.memory->get(), bytes.data(), bytes.size());
  }
  answer_importance(next.connection, good);
}

// Jobs that share a dataset share its storage too: each gets a part of the bandwidth.
void Optimizer::judge_benefit(Session* session, const ImportanceBook::Who& who) {
  BenefitEstimate& estimate = session->benefits[who.dataset];
  const auto jobs = std::count_if(sessions_.begin(), sessions_.end(), [&](const auto& one) {
    return one.second->selects && one.second->benefits.count(who.dataset) != 0;
  });
  const double storage = storage_ns(who.dataset, who.samples) * static_cast<double>(jobs);
  const std::optional<double> benefit =
      storage > 0 ? estimate.benefit(storage) : std::optional<double>();
  if (benefit) importance_.set_benefit(who, *benefit);
  estimate.pause();
}

// Time per sample of the dataset when storage is read at full bandwidth, in ns; 0: unknown.
double Optimizer::storage_ns(uint32_t dataset, uint64_t samples) {
  constexpr uint64_t kLooked = 16;  // samples that represent all
  double sum = 0;
  uint64_t known = 0;
  for (uint64_t i = 0; i < kLooked; ++i) {
    const double sample_ns =
        scheduler_.store().parallel_ns(samples_.parts(dataset, samples * i / kLooked));
    sum += sample_ns;
    known += sample_ns > 0 ? 1 : 0;
  }
  return known == 0 ? 0 : sum / static_cast<double>(known);
}

// Substitutes are decided in advance, by what will be retained and read by then: the job's order
// then is as certain as its plan, and no request is needed while samples are read.
bool Optimizer::serve(const Session& session, const ImportanceBook::Who& who,
                      const protocol::Samples& request, int fd) {
  std::vector<uint32_t> samples(request.count);
  if (!read_memory(fd, samples.data(), request.bytes) ||
      std::any_of(samples.begin(), samples.end(),
                  [&](uint32_t sample) { return sample >= who.samples; }) ||
      !importance_.follows(who, request.epoch, request.first, request.count)) {
    return false;
  }
  const Store::Kinds kept{
      stage_.exists() && may_stage(session) && by_importance(stage_plan_.room().policy()),
      by_importance(scheduler_.retention().records().policy(who.dataset))};
  importance_.forget_lost(who.dataset, [&](SampleId sample) {
    return scheduler_.store().in_memory(who.dataset, sample);
  });
  const auto bytes_of = [&](SampleId sample) {
    return scheduler_.store().charge(samples_.parts(who.dataset, sample), kept);
  };
  for (uint32_t& sample : samples) {
    const Answer answer = importance_.serve(who, sample, bytes_of);
    sample = answer.sample | static_cast<uint32_t>(answer.how) << protocol::kServedShift;
  }
  return write_memory(fd, samples.data(), request.bytes);
}

// Copies are retained by the policy that a session asks for, if any; by importance, while all
// sessions that may stage select by it; else by known orders.
void Optimizer::choose_policy() {
  std::optional<PolicyKind> asked;
  bool any_selects = false, any_shares = false, all_may = true;
  for (const auto& [id, session] : sessions_) {
    const bool shares = session->selects && importance_.shares(id);
    if (session->selects && !session->options.policy) {
      scheduler_.accounts().set_policy(id, shares ? kOfSeveral : kByImportance);
    }
    if (!may_stage(*session)) continue;
    if (session->options.policy) asked = session->options.policy;
    any_selects |= session->selects;
    any_shares |= shares;
    all_may &= session->options.selects;
  }
  if (sessions_.empty()) return;
  const PolicyKind before = stage_plan_.room().policy();
  const PolicyKind otherwise = !any_selects || !all_may ? PolicyKind::kAuto
                               : any_shares             ? kOfSeveral
                                                        : kByImportance;
  stage_plan_.room().set_policy(asked.value_or(otherwise));
  orders_new_ |= stage_plan_.room().policy() != before;  // a new policy has to learn them
}

// Bytes of the dataset that may be retained across epochs: what prefetching leaves of the budget.
uint64_t Optimizer::importance_capacity(uint32_t dataset) {
  if (scheduler_.retention().records().tracks(dataset))
    return scheduler_.retention().records().capacity(dataset);
  const size_t others = importance_.datasets();
  return stage_.exists() ? stage_plan_.room().keepable() / std::max<size_t>(others, 1) : 0;
}

// The ranks by which samples are retained change with each read: updated before the stores evict.
void Optimizer::rank_samples(const Session& session, const Session& owner, uint32_t process,
                             uint32_t dataset, uint64_t index) {
  // Forked ranks may share a session; a worker is the child of its rank.
  if (importance_.ranks(owner.id, dataset) > 1 &&
      !importance_.is_rank(owner.id, process, dataset)) {
    process = session.parent_of(process);
  }
  const bool was_retained = scheduler_.store().retains(dataset, static_cast<uint32_t>(index));
  for (const KeepRanks::Rank& one :
       importance_.on_read(owner.id, process, dataset, index, was_retained)) {
    scheduler_.store().set_importance(dataset, one.sample, one.rank);
  }
}

void Optimizer::count_importance(std::span<const ImportanceBook::View> views, uint32_t session,
                                 SessionMetrics* metrics) {
  using protocol::SessionMetric;
  std::map<SessionMetric, uint64_t> sums;
  for (const ImportanceBook::View& view : views) {
    if (view.session != session) continue;
    sums[SessionMetric::samples_offered] += view.all_offered;
    sums[SessionMetric::samples_selected] += view.all_selected;
    sums[SessionMetric::h_hits] += view.served.of(Served::kHHit);
    sums[SessionMetric::l_hits_exact] += view.served.of(Served::kLExact);
    sums[SessionMetric::l_hits_substituted] += view.served.of(Served::kSubstituted);
    sums[SessionMetric::importance_misses] +=
        view.served.of(Served::kMiss) + view.served.of(Served::kMissOther);
    sums[SessionMetric::heap_swaps] += view.swaps;
    uint64_t& benefit = sums[SessionMetric::benefit_permille];  // of the dataset with the largest
    benefit = std::max(benefit, static_cast<uint64_t>(view.benefit * 1000));
  }
  for (const auto& [metric, sum] : sums) (*metrics)[static_cast<size_t>(metric)] = sum;
}

nlohmann::json Optimizer::importance_status() const {
  nlohmann::json all = nlohmann::json::array();
  for (const ImportanceBook::View& view : importance_.views()) {
    all.push_back({{"session", view.session},
                   {"dataset", view.dataset},
                   {"reported", view.reported},
                   {"refused", view.refused},
                   {"known", view.known},
                   {"epoch", view.epoch},
                   {"selected", view.selected},
                   {"h_hits", view.served.of(Served::kHHit)},
                   {"l_exact", view.served.of(Served::kLExact)},
                   {"l_substituted", view.served.of(Served::kSubstituted)},
                   {"misses", view.served.of(Served::kMiss) + view.served.of(Served::kMissOther)},
                   {"broken", view.broken},
                   {"displaced", view.displaced},
                   {"benefit", view.benefit},
                   {"heap_swaps", view.swaps}});
  }
  return all;
}

}  // namespace sluice::optimizer
