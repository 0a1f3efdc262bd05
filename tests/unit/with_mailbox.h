// What other threads pass on to the core thread, which the test is.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <exception>
#include <memory>

#include "optimizer/io/mailbox.h"

namespace sluice::optimizer::test {

class WithMailbox : public ::testing::Test {
 protected:
  // Until the condition is true, runs what other threads pass on.
  template <typename Condition>
  void until(Condition condition) {
    while (!condition()) {
      pollfd ready = {mailbox_->fd(), POLLIN, 0};
      ASSERT_EQ(poll(&ready, 1, kLimitMs), 1) << "nothing came";
      mailbox_->run([](const std::exception& error) { FAIL() << error.what(); });
    }
  }

  static constexpr int kLimitMs = 60'000;
  const std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
};

}  // namespace sluice::optimizer::test
