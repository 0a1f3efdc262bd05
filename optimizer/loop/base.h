// What all services build on. Core thread only, except where a member says otherwise.
#pragma once

#include <cstdint>

#include "optimizer/daemon/options.h"
#include "optimizer/io/executor.h"
#include "optimizer/loop/dispatcher.h"
#include "optimizer/loop/event_loop.h"
#include "optimizer/loop/server.h"

namespace sluice::optimizer {

// What the optimizer was started with and a job's hello may change.
struct Settings {
  uint32_t linger = 0;  // seconds
  bool no_cachestat = false, no_pagemap_scan = false;
};

struct Base {
  Base(const DaemonOptions& options, int listener, int stop_fd)
      : settings{options.linger, options.no_cachestat, options.no_pagemap_scan},
        loop(stop_fd),
        server(&loop, listener) {}

  Settings settings;
  EventLoop loop;
  Executor executor;
  Server server;
  Dispatcher dispatcher;
};

}  // namespace sluice::optimizer
