#include "optimizer/loop/event_loop.h"

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "optimizer/io/log.h"

namespace sluice::optimizer {
namespace {

constexpr unsigned kTagShift = 56;  // the tag is the highest byte of an event's data

}  // namespace

EventLoop::EventLoop(int stop_fd) : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  on(Tag::kStop, [this](uint64_t, uint32_t) { stop(); });
  on(Tag::kMailbox, [this](uint64_t, uint32_t) { run_mailbox(); });
  watch(mailbox_->fd(), Tag::kMailbox, 0, EPOLLIN);
  watch(stop_fd, Tag::kStop, 0, EPOLLIN);
}

void EventLoop::watch(int fd, Tag tag, uint64_t value, uint32_t events, bool add) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = static_cast<uint64_t>(tag) << kTagShift | value;
  epoll_ctl(epoll_.get(), add ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event);
}

uint64_t EventLoop::timeout_ns(uint64_t most_ns) const {
  const uint64_t now = now_ns();
  uint64_t until = now + most_ns;
  for (const Deadline& deadline : deadlines_) until = std::min(until, deadline(now));
  return until > now ? until - now : 0;
}

void EventLoop::turn(uint64_t timeout) {
  epoll_event events[64];
  const timespec wait{static_cast<time_t>(timeout / kSecond), static_cast<long>(timeout % kSecond)};
  const int count = static_cast<int>(
      // epoll_pwait2() is missing from the oldest supported C library: use its system call.
      syscall(SYS_epoll_pwait2, epoll_.get(), events, std::size(events), &wait, nullptr, 0));
  if (count < 0 && errno != EINTR) stop();
  for (int i = 0; i < count; ++i) {
    const uint64_t data = events[i].data.u64;
    handlers_[data >> kTagShift](data & ((1ULL << kTagShift) - 1), events[i].events);
  }
}

bool EventLoop::tick_due(uint64_t now) {
  if (now < next_tick_ns_) return false;
  next_tick_ns_ = now + kTickNs;
  return true;
}

void EventLoop::run_mailbox() {
  mailbox_->run([](const std::exception& error) {
    say(Level::kError, "work was abandoned: {}", error.what());
  });
}

}  // namespace sluice::optimizer
