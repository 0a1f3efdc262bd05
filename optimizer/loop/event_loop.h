// What the core thread waits for: descriptors, the mailbox, and deadlines. Core thread only.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "optimizer/io/clock.h"
#include "optimizer/io/mailbox.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {

class EventLoop {
 public:
  // What a descriptor is watched for; a tag's handler distinguishes its descriptors by `value`.
  enum class Tag : uint8_t {
    kListener,
    kMailbox,
    kEngine,
    kStop,
    kConnection,
    kProcess,
    kPeer,
    kWatch,
    kMounts,
    kCount
  };
  using Handler = std::function<void(uint64_t value, uint32_t events)>;
  // Returns the time (CLOCK_MONOTONIC, ns) of the next work; UINT64_MAX: none is due.
  using Deadline = std::function<uint64_t(uint64_t now_ns)>;

  static constexpr uint64_t kTickNs = 100 * kMillisecond;

  // Stops when `stop_fd` becomes readable.
  explicit EventLoop(int stop_fd);

  void on(Tag tag, Handler handler) { handlers_[static_cast<size_t>(tag)] = std::move(handler); }
  // Passes `events` (EPOLLIN and the like) of `fd` to the tag's handler, until `fd` is closed.
  // `value` is below 2^56. `add` false: changes the events of a watched descriptor.
  void watch(int fd, Tag tag, uint64_t value, uint32_t events, bool add = true);
  void wake_by(Deadline deadline) { deadlines_.push_back(std::move(deadline)); }

  // How long to wait at most: until the first deadline, and no longer than `most_ns`.
  uint64_t timeout_ns(uint64_t most_ns) const;
  // Waits that long for events, and handles them.
  void turn(uint64_t timeout_ns);
  // True once every kTickNs.
  bool tick_due(uint64_t now_ns);

  // Runs the work that waits in the mailbox. May be called from such work.
  void run_mailbox();
  // Shared with threads that may outlive the loop.
  const std::shared_ptr<Mailbox>& mailbox() const { return mailbox_; }

  void stop() { stopping_ = true; }
  bool stopping() const { return stopping_; }

 private:
  const UniqueFd epoll_;
  const std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  std::array<Handler, static_cast<size_t>(Tag::kCount)> handlers_;
  std::vector<Deadline> deadlines_;
  uint64_t next_tick_ns_ = 0;
  bool stopping_ = false;
};

}  // namespace sluice::optimizer
