// The events of threads that read samples: what is learned of samples' locations, and how their
// hits, times and uses of copies are counted. Core thread only.
#pragma once

#include <span>

#include "optimizer/services/histories.h"
#include "optimizer/services/importance.h"
#include "optimizer/services/samples/harm_control.h"
#include "optimizer/services/samples/record_locator.h"
#include "policy/planner/uptake.h"
#include "policy/util/ids.h"

namespace sluice::optimizer {

class SampleEvents : Service {
 public:
  // All outlive this.
  SampleEvents(const Service& service, RecordLocator* records, Histories* histories,
               Importance* importance, HarmControl* harm);

  // REQUIRES: the event is one of a sample. False: it is invalid.
  bool on_event(Session& session, const TakenEvent& event);
  void remove_dataset(policy::DatasetId dataset) { uptake_.remove(dataset); }

 private:
  void begin(Session& session, uint64_t reader, policy::DatasetId dataset, uint64_t index,
             uint64_t time_ns);
  void time_sample(uint64_t reader, policy::DatasetId dataset, uint64_t index, uint64_t time_ns,
                   std::span<const policy::Extent> parts, bool prefetched);
  // False: the sample had not been begun.
  bool end(Session& session, uint64_t reader, policy::DatasetId dataset, uint64_t index,
           policy::Uptake::End end);
  bool add_part(const Session& session, uint64_t reader, policy::DatasetId dataset, uint64_t index,
                const protocol::EventData& event);
  void note_uptake(policy::SessionId owner, uint64_t reader, policy::DatasetId dataset,
                   uint64_t index, policy::Uptake::End end);
  void share_file(policy::SessionId session, policy::DatasetId dataset, FileEntry& file);

  RecordLocator* const records_;
  Histories* const histories_;
  Importance* const importance_;
  HarmControl* const harm_;
  policy::Uptake uptake_;
};

}  // namespace sluice::optimizer
