// The traces that sessions record: which session records in which file, the records that wait to
// be written, and the files, which only executor threads access. Core thread only; never blocks.
//
// A session may have one trace; sessions that pass descriptors of one file share it. Records are
// batched for at most a tenth of a second (tick()), with one write per trace at a time. A failed
// write, or a backlog of kMaxWaiting records, only ends the recording, with one warning: later
// records are counted as lost.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "optimizer/io/executor.h"
#include "optimizer/io/mailbox.h"
#include "optimizer/trace/recorder.h"
#include "policy/samples/sample_book.h"
#include "policy/util/ids.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {

class Recordings {
 public:
  Recordings(Executor* executor, std::shared_ptr<Mailbox> mailbox)
      : executor_(executor), mailbox_(std::move(mailbox)) {}
  Recordings(const Recordings&) = delete;
  Recordings& operator=(const Recordings&) = delete;

  // Records the session's samples in the file of `passed`, which the job opened only for this: it
  // shares neither locks nor an offset with the job's own descriptors. `parent` is the parent of
  // `pid`. `answer` is called once, later, with "" or a one-line error.
  using Answer = std::function<void(const std::string& problem)>;
  void attach(policy::SessionId session, uint32_t pid, uint32_t parent, UniqueFd passed,
              Answer answer);
  bool attached(policy::SessionId session) const { return members_.count(session) != 0; }

  // To be called after `book` was notified of the same. Costs a look-up without a recording.
  void begin(policy::SessionId session, uint64_t reader, policy::DatasetId dataset, uint64_t index,
             const policy::SampleBook& book);
  void end(policy::SessionId session, uint64_t reader, policy::DatasetId dataset, uint64_t index,
           uint64_t bytes);
  void remove_process(uint32_t pid);

  void tick();  // several times a second
  // The session has ended: its records are written, and the file is closed with its last session.
  void leave(policy::SessionId session);
  // Traces that must still write records of ended sessions, or close their file.
  size_t unsettled() const;
  std::function<void()> on_settled;  // whenever unsettled() may have become 0

  struct Counts {
    uint64_t recorded = 0, lost = 0;  // records; recorded ones may not be written yet
  };
  Counts counts(policy::SessionId session) const;

  static constexpr size_t kMaxWaiting = 1 << 18;  // records, 6 MiB

 private:
  struct Trace {
    enum class State { kOpening, kOpen, kFailed };
    State state = State::kOpening;
    uint64_t device = 0, inode = 0;
    std::shared_ptr<UniqueFd> fd;  // used by the executor only, while work is under way
    Recorder recorder;
    std::set<policy::SessionId> sessions;
    std::vector<Answer> answers;  // called once the file is prepared
    std::vector<protocol::TraceRecord> waiting;
    std::vector<policy::SessionId> owners;  // the session of each waiting record
    bool busy = false;                      // preparing, writing or closing
    bool closing = false;
    // Batches written, and the count at which all records of ended sessions are written.
    uint64_t batches = 0, settle = 0;
  };
  struct Member {
    uint32_t pid = 0, parent = 0;
    Trace* trace = nullptr;  // nullptr: being identified, or refused
    Counts counts;
  };

  void identified(policy::SessionId session, uint64_t device, uint64_t inode,
                  std::shared_ptr<UniqueFd> fd, const Answer& answer);
  void prepared(Trace& trace, uint32_t jobs, const std::string& problem);
  void write(Trace& trace);
  void fail(Trace& trace, const std::string& problem);
  void close_if_over(Trace& trace);
  void count_lost(const std::vector<policy::SessionId>& owners);
  void dispose(uint64_t device, std::shared_ptr<UniqueFd> fd);
  Member* recording(policy::SessionId session);

  Executor* const executor_;
  const std::shared_ptr<Mailbox> mailbox_;
  std::list<Trace> traces_;  // a list: addresses are stable
  std::map<policy::SessionId, Member> members_;
};

}  // namespace sluice::optimizer
