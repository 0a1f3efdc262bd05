// The sidecar: one core thread that owns all state and blocks only in epoll_wait, one ring reader
// thread per session (ring_reader.h), and executor threads for calls that a file system may block
// and for long computations.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "optimizer/core/files.h"
#include "optimizer/core/harm_keeper.h"
#include "optimizer/core/place_keeper.h"
#include "optimizer/core/record_keeper.h"
#include "optimizer/core/server.h"
#include "optimizer/core/session.h"
#include "optimizer/core/stage_keeper.h"
#include "optimizer/daemon/options.h"
#include "optimizer/daemon/seat.h"
#include "optimizer/io/engine.h"
#include "optimizer/io/executor.h"
#include "optimizer/io/mailbox.h"
#include "optimizer/io/memory.h"
#include "optimizer/trace/recordings.h"
#include "policy/importance/book.h"
#include "policy/planner/scheduler.h"
#include "policy/planner/uptake.h"

namespace sluice::optimizer {

class Optimizer : private Residency {
 public:
  // `seat` must listen and outlive the optimizer, which ends when `stop_fd` becomes readable.
  Optimizer(const DaemonOptions& options, Seat* seat, int stop_fd);
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  ~Optimizer() override;

  // Returns once it is stopped, or no session has existed for the linger time.
  void run();

  std::string status() const;  // JSON

 private:
  enum class Tag : uint32_t {
    kListener,
    kMailbox,
    kEngine,
    kStop,
    kConnection,
    kProcess,
    kPeer,
    kWatch,
    kMounts
  };
  struct Waiter {  // a kBye that is answered once every file is closed
    uint64_t connection = 0, deadline_ns = 0;
  };

  // Residency
  uint64_t cached(uint32_t file, Range range) override;
  bool known(uint32_t file) const override;
  bool exact(uint32_t file) const override;
  bool awaited(uint32_t file) const override;

  void watch(int fd, Tag tag, uint64_t value, uint32_t events, bool add);
  void dispatch(uint64_t data, uint32_t events);
  uint64_t timeout_ns() const;
  void turn(uint64_t timeout_ns);  // waits for events and handles them
  void run_mailbox();
  void after_events(std::function<void()> then);
  void relax();
  void tick();
  void pump();

  // optimizer_limits.cc: what is done when memory is short
  // Releases datasets until there is room for `more` bytes of samples and orders.
  void relieve(uint64_t more = 0);
  // Runs `work` for a session (0: for none). If it throws (std::bad_alloc and the like), only this
  // session ends. False: it threw.
  bool guarded(uint32_t session, const std::function<void()>& work);
  void give_up(uint32_t session, const char* why);
  void on_packet(const Peer& peer, std::span<const std::byte> packet, std::vector<UniqueFd> fds);

  // optimizer_control.cc: requests on the control socket
  void on_message(const Peer& peer, std::span<const std::byte> packet, std::vector<UniqueFd> fds);
  // One for each kind of message.
  void handle(const Peer& peer, const BadMessage& bad, std::vector<UniqueFd> fds);
  void handle(const Peer& peer, const StatusMessage& message, std::vector<UniqueFd> fds);
  void handle(const Peer& peer, const StopMessage& message, std::vector<UniqueFd> fds);
  void handle(const Peer& peer, const HelloMessage& hello, std::vector<UniqueFd> fds);
  void handle(const Peer& peer, const FileMessage& file, std::vector<UniqueFd> fds);
  void handle(const Peer& peer, const ByeMessage& bye, std::vector<UniqueFd> fds);

  // optimizer_samples.cc: datasets and orders, and events of samples (false: invalid)
  void handle(const Peer& peer, const DatasetMessage& dataset, std::vector<UniqueFd> fds);
  void handle(const Peer& peer, const SamplesMessage& order, std::vector<UniqueFd> fds);
  void handle(const Peer& peer, const LocateMessage& locate, std::vector<UniqueFd> fds);
  bool may_name_paths(const Peer& peer, Session* session);
  bool locate_files(const Session& session, const protocol::Samples& request,
                    std::string_view text);
  bool locate_extents(const Session& session, const protocol::Samples& request,
                      std::string_view text);
  bool locate_keys(const Session& session, const protocol::Samples& request, std::string_view text);
  void handle(const Peer& peer, const SeenMessage& seen, std::vector<UniqueFd> fds);
  void handle(const Peer& peer, const FileUseMessage& message, std::vector<UniqueFd> fds);
  bool on_sample_event(Session& session, const TakenEvent& event);

  // optimizer_harm.cc: switches off mechanisms that do more harm than good
  void on_harm(uint32_t dataset, const HarmKeeper::Finding& found, uint64_t now_ns);
  void drop_control_copies(uint32_t dataset);
  void apply_harm(uint32_t dataset, HarmKeeper::Mechanism mechanism, uint64_t now_ns);
  void watch_harm(uint64_t now_ns);
  bool nothing_to_gain(const Session& session) const;
  bool nothing_to_learn(const Session& session, uint32_t dataset, uint32_t epoch) const;
  void look_again(uint32_t dataset);
  void ask_for_pages();
  void share_file(uint32_t session, uint32_t dataset, FileEntry& file);
  void handle(const Peer& peer, const RecordMessage& record, std::vector<UniqueFd> fds);

  // optimizer_importance.cc: importance of samples, and which of them an epoch fetches
  void handle(const Peer& peer, const ImportanceMessage& message, std::vector<UniqueFd> fds);
  bool take_importance(const ImportanceBook::Who& who, const protocol::Samples& request, int fd);
  void answer_importance(uint64_t connection, bool good);
  // True: the answer is sent later.
  bool select(const Peer& peer, Session* session, const ImportanceBook::Who& who,
              const protocol::Samples& request, UniqueFd memory);
  void begin_epoch();
  bool serve(const Session& session, const ImportanceBook::Who& who,
             const protocol::Samples& request, int fd);
  uint64_t importance_capacity(uint32_t dataset);
  void judge_benefit(Session* session, const ImportanceBook::Who& who);
  double storage_ns(uint32_t dataset, uint64_t samples);
  void choose_policy();
  uint64_t job_of(const Session& session, uint64_t group) const;
  // `process` of `session` has read a sample in the order of the session `owner`.
  void rank_samples(const Session& session, const Session& owner, uint32_t process,
                    uint32_t dataset, uint64_t index);
  static void count_importance(std::span<const ImportanceBook::View> views, uint32_t session,
                               SessionMetrics* metrics);
  nlohmann::json importance_status() const;

  // optimizer_stage.cc: the stage
  void handle(const Peer& peer, const StageMessage& stage, std::vector<UniqueFd> fds);
  void handle(const Peer& peer, const SettleMessage& settle, std::vector<UniqueFd> fds);
  bool may_stage(const Session& session) const;
  void predict(uint64_t now_ns);
  void share_budget(uint64_t now_ns);
  nlohmann::json stage_status() const;

  // optimizer_history.cc: the data of `sluice report`
  void record(uint64_t now_ns);
  void add_point(Session& session, uint64_t now_ns);
  void note_streamed(Session& session, uint64_t now_ns);
  void note_pass(Session& session, uint64_t now_ns);
  Session& whose_epoch(Session& session, uint32_t dataset, uint64_t now_ns);
  void enter_epoch(const Session& session);
  void begin_sample(Session& session, uint64_t reader, uint32_t dataset, uint64_t index,
                    uint64_t time_ns);
  // False: the sample had not been begun.
  bool end_sample(Session& session, uint64_t reader, uint32_t dataset, uint64_t index,
                  Uptake::End end);
  void note_uptake(uint32_t owner, uint64_t reader, uint32_t dataset, uint64_t index,
                   Uptake::End end);

  void answer_waiters(bool all);
  // nullptr: no such session, or the token is wrong.
  Session* session_of(uint64_t id, uint64_t token);
  // The same, and the peer has been sent a refusal.
  Session* session_or_refuse(const Peer& peer, uint64_t id, uint64_t token);

  // optimizer_sessions.cc: processes and events
  void on_events(uint32_t session, const std::vector<TakenEvent>& events);
  void on_event(Session& session, const TakenEvent& event, uint64_t now_ns);
  void trace(const char* kind, uint32_t session, const TakenEvent& event) const;
  void find_parent(const Session& session);
  void find_process(Session& session, uint32_t slot);
  void find_unwatched();
  void on_slot_taken(uint32_t session, uint32_t slot, uint32_t pid);
  void on_slot_freed(uint32_t session, uint32_t slot, uint32_t pid, const ClientMetrics& metrics);
  void on_process_end(uint32_t session, uint32_t slot);
  void on_mapped(Session& session, const TakenEvent& event, uint64_t now_ns);
  void forget_mapping(Session& session, uint32_t slot, uint64_t address);
  void end_session(uint32_t session);
  void end_empty_sessions(uint64_t now_ns);
  void publish_metrics();

  // optimizer_observe.cc: page tables
  void observe(uint64_t now_ns);
  void count_faults(Session& session, const ObservedMapping& mapping, uint64_t now_ns);
  uint64_t next_observation_ns() const;

  void start_reads(uint64_t now_ns);
  void finish_reads();
  void start_drops(uint64_t now_ns);
  void update_budget();

  const DaemonOptions options_;
  Seat* const seat_;
  const int stop_fd_;
  uint32_t linger_;
  bool stopping_ = false;
  bool deaf_ = false;  // out of descriptors: no connection is accepted until the next tick
  UniqueFd epoll_;
  const uint64_t started_ns_;
  uint64_t idle_since_ns_;
  uint64_t next_tick_ns_ = 0;
  uint64_t next_budget_ns_ = 0;
  uint64_t reap_ns_ = 0;  // results are collected at this time; 0: as they come
  uint32_t next_session_ = 1;
  MemoryReader memory_;
  std::unique_ptr<Engine> engine_;
  FileTable sample_files_;
  SampleBook samples_;
  ImportanceBook importance_;
  std::set<uint64_t> choosing_;  // connections that wait for an answer to kSelect
  struct Chosen {
    uint64_t connection = 0;
    ImportanceBook::Who who;
    std::shared_ptr<EpochChoice> choice;  // nullptr: its rank has ended
    std::shared_ptr<UniqueFd> memory;     // receives the answer
  };
  std::deque<Chosen> chosen_;
  HarmKeeper harm_;
  Uptake uptake_;
  StagePlan stage_plan_;
  Scheduler scheduler_;
  std::shared_ptr<Mailbox> mailbox_;
  Executor executor_;
  Executor choosers_{2, 2};  // choose which samples an epoch fetches
  StageKeeper stage_;
  Files files_;
  PlaceKeeper places_;
  RecordKeeper records_;
  Recordings recordings_;
  Server server_;
  std::map<uint32_t, std::unique_ptr<Session>> sessions_;
  std::vector<Waiter> waiters_;
  struct Read {
    uint32_t file = 0;
    Range range;
  };
  std::map<uint64_t, Read> reads_;    // submitted to the engine, by token
  std::vector<PlannedRead> planned_;  // waiting for room in the engine
  MemoryShares shares_;
  uint64_t next_prediction_ns_ = 0;  // when predictions may be computed from the orders again
  bool orders_new_ = false;          // and whether the orders have changed
  bool said_no_stage_ = false, said_table_full_ = false;
  uint32_t doomed_ = 0;  // a session that failed and could not be ended yet; 0: none
  // No read or fetch is under way. Written by the core thread, read by the ring readers.
  std::shared_ptr<std::atomic<bool>> idle_ = std::make_shared<std::atomic<bool>>(true);
  bool no_cachestat_;
  bool no_pagemap_scan_;
};

}  // namespace sluice::optimizer
