// Jobs' requests about samples: the datasets, orders and locations that they declare, and traces of
// what they read. Core thread only.
#pragma once

#include <string_view>

#include "optimizer/services/limits.h"
#include "policy/util/ids.h"

namespace sluice::optimizer {

class SampleRequests : Service {
 public:
  // All outlive this.
  SampleRequests(const Service& service, StoredLocations* stored, RecordLocator* records,
                 Limits* limits);

  void handle(const Peer& peer, const DatasetMessage& message, std::vector<UniqueFd> fds);
  void handle(const Peer& peer, const SamplesMessage& message, std::vector<UniqueFd> fds);
  void handle(const Peer& peer, const LocateMessage& message, std::vector<UniqueFd> fds);
  void handle(const Peer& peer, const SeenMessage& message, std::vector<UniqueFd> fds);
  void handle(const Peer& peer, const FileUseMessage& message, std::vector<UniqueFd> fds);
  void handle(const Peer& peer, const RecordMessage& message, std::vector<UniqueFd> fds);

  // Lets sessions report which pages they read if that is of use.
  void request_pages();

 private:
  bool may_name_paths(const Peer& peer, Session* session);
  void begin_epoch(const Session& session, const protocol::Samples& order);
  bool locate_files(const Session& session, const protocol::Samples& request,
                    std::string_view text);
  bool locate_extents(const Session& session, const protocol::Samples& request,
                      std::string_view text);
  bool locate_keys(const Session& session, const protocol::Samples& request, std::string_view text);
  bool nothing_to_gain(const Session& session) const;
  bool nothing_to_learn(const Session& session, policy::DatasetId dataset, uint32_t epoch) const;
  void resume_events(policy::DatasetId dataset);

  StoredLocations* const stored_;
  RecordLocator* const records_;
  Limits* const limits_;
  bool warned_table_full_ = false;
};

}  // namespace sluice::optimizer
