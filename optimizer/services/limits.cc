#include "optimizer/services/limits.h"

#include <algorithm>

#include "optimizer/io/log.h"

namespace sluice::optimizer {

using policy::Accounts;
using policy::kNoSession;
using policy::SampleBook;
using policy::SampleSet;
namespace {

constexpr uint64_t kUpdateNs = kSecond;
// What is known of samples may take 1/kTablesShare of the budget, within these limits (bytes).
constexpr uint64_t kTablesShare = 4;
constexpr uint64_t kLeastTables = 16 << 20;
constexpr uint64_t kMostTables = 512 << 20;

}  // namespace

Limits::Limits(const Service& service, uint64_t memory, StoredLocations* stored,
               RecordLocator* records)
    : Service(service), memory_(memory), stored_(stored), records_(records) {
  read_memory_limits();
}

void Limits::relieve(uint64_t more) {
  SampleBook& samples = plans_->samples;
  while (const auto surplus = samples.surplus(more)) {
    const SampleSet* set = samples.set(surplus->dataset);
    const auto about = samples.following(kNoSession, surplus->dataset);
    if (surplus->for_good && set != nullptr && about) {
      say(Level::kWarn,
          "{}: not followed: what is known of {} of its {} samples, and their order, take more "
          "than the {} MiB that all datasets may take",
          about->name, set->known(), set->samples(), samples.memory().most >> 20);
    } else if (about) {
      say(Level::kInfo, "{}: evicted for datasets that were used since", about->name);
    }
    stored_->release(surplus->dataset);
    plans_->importance.remove_dataset(surplus->dataset);
    plans_->scheduler.retention().remove_dataset(surplus->dataset);
    records_->remove(surplus->dataset);
    samples.release(*surplus);
    plans_->orders_changed = true;
  }
}

void Limits::read_memory_limits() {
  next_update_ns_ = now_ns() + kUpdateNs;
  shares_.update(reader_.read(), memory_, plans_->stage.table().used());
  plans_->samples.set_most_bytes(
      std::clamp(shares_.budget() / kTablesShare, kLeastTables, kMostTables));
  records_->set_budget(shares_.budget());
  plans_->scheduler.retention().set_most(shares_.most());
  share(now_ns());
}

void Limits::share(uint64_t now) {
  uint64_t requested = 0;
  bool unlimited = false;
  for (const auto& [id, session] : sessions_->all()) {
    if (!session->may_stage()) continue;
    unlimited |= session->options.memory == 0;
    requested = std::max(requested, session->options.memory);
  }
  Accounts& accounts = plans_->scheduler.accounts();
  stage_->tick(now, shares_.stage(
                        accounts.outstanding() + plans_->scheduler.retention().records().retained(),
                        unlimited ? 0 : requested));
  accounts.set_budget(shares_.cache(plans_->stage.table().used()));
}

void Limits::tick(uint64_t now) {
  share(now);
  const bool anything = !sessions_->empty() || !plans_->stage.table().all().empty();
  if (anything && now >= next_update_ns_) read_memory_limits();
}

}  // namespace sluice::optimizer
