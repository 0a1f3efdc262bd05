// The traces that sessions have recorded: who records where, what waits to be written, and the
// files, which are touched on the executor's threads alone. Core thread only; never blocks.
//
// A session may have one trace; sessions that pass descriptors of one file share it. Records are
// gathered and written a tenth of a second later at most (tick()), one write of a trace at a time.
// A write that fails, or storage that stays behind by kMaxWaiting records, ends the recording with
// one line and nothing else: what comes after is counted as lost.
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
#include "protocol/unique_fd.h"

namespace sluice::optimizer {

class Recordings {
 public:
  Recordings(Executor* executor, std::shared_ptr<Mailbox> mailbox)
      : executor_(executor), mailbox_(std::move(mailbox)) {}
  Recordings(const Recordings&) = delete;
  Recordings& operator=(const Recordings&) = delete;

  // The session's samples are recorded in the file, whose descriptor is kept: the job opened it for
  // this alone, so that it shares neither locks nor an offset with any of the job's own. `parent`
  // is the process that began `pid`. `answer` is called once, later: "", or one line why not.
  using Answer = std::function<void(const std::string& problem)>;
  void attach(uint32_t session, uint32_t pid, uint32_t parent, UniqueFd passed, Answer answer);
  bool attached(uint32_t session) const { return members_.count(session) != 0; }

  // After the book has been told the same. Sessions that record nothing cost a look-up.
  void begin(uint32_t session, uint64_t reader, uint32_t dataset, uint64_t index,
             const SampleBook& book);
  void end(uint32_t session, uint64_t reader, uint32_t dataset, uint64_t index, uint64_t bytes);
  void forget_process(uint32_t pid);

  void tick();  // several times a second
  // The session is over: all that it has recorded is written, and its file closed behind the last.
  void leave(uint32_t session);
  // Traces with records of sessions that have left yet to be written, or a file to be closed.
  size_t unsettled() const;
  std::function<void()> on_settled;  // whenever unsettled() may have become 0

  struct Counts {
    uint64_t recorded = 0, lost = 0;  // records; those recorded may still have to be written
  };
  Counts counts(uint32_t session) const;

  static constexpr size_t kMaxWaiting = 1 << 18;  // records, 6 MiB

 private:
  struct Trace {
    enum class State { kOpening, kOpen, kFailed };
    State state = State::kOpening;
    uint64_t device = 0, inode = 0;
    std::shared_ptr<UniqueFd> fd;  // the executor's while a piece of work is under way
    Recorder recorder;
    std::set<uint32_t> sessions;
    std::vector<Answer> answers;  // of those who wait for it to be opened
    std::vector<protocol::TraceRecord> waiting;
    std::vector<uint32_t> whose;  // the session of each of these
    bool busy = false;            // preparing, writing or closing
    bool closing = false;
    // Batches written, and how many must be before all is settled for those who have left.
    uint64_t batches = 0, settle = 0;
  };
  struct Member {
    uint32_t pid = 0, parent = 0;
    Trace* trace = nullptr;  // nullptr: being identified, or refused
    Counts counts;
  };

  void identified(uint32_t session, uint64_t device, uint64_t inode, std::shared_ptr<UniqueFd> fd,
                  const Answer& answer);
  void prepared(Trace& trace, uint32_t jobs, const std::string& problem);
  void write(Trace& trace);
  void fail(Trace& trace, const std::string& problem);
  void close_if_over(Trace& trace);
  void lose(const std::vector<uint32_t>& whose);
  void dispose(uint64_t device, std::shared_ptr<UniqueFd> fd);
  Member* recording(uint32_t session);

  Executor* const executor_;
  const std::shared_ptr<Mailbox> mailbox_;
  std::list<Trace> traces_;  // addresses stay
  std::map<uint32_t, Member> members_;
};

}  // namespace sluice::optimizer
