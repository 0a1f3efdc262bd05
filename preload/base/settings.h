// The library's options, read once in the constructor. Constant afterwards; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "protocol/control.h"
#include "protocol/options.h"

namespace sluice::preload {

enum class LogLevel : uint8_t { kOff, kError, kWarn, kInfo, kDebug, kTrace };

struct Settings {
  bool off = true;  // until the settings have been read
  bool checkpoint_auto = true;
  protocol::CheckpointMode checkpoint = protocol::CheckpointMode::kCell;
  uint64_t distance = 0;  // bytes; 0 is auto
  LogLevel log = LogLevel::kWarn;
  bool prefetch = true;
  bool stage = true;        // sample files may be staged
  bool stage_all = false;   // on any mount
  uint64_t stale = 3;       // seconds
  uint64_t patience = 500;  // milliseconds; see session/patience.h
  bool python = true;       // the PyTorch adapter
  uint32_t importance = 0;  // 0 off, 1 losses are observed, 2 losses also decide what is fetched
  // How many samples an epoch fetches with importance 2; see sluice_selection_rule.
  uint32_t warm_up = 0, full_every = 0;
  double selected_share = 1;
  bool substitutes =
      false;          // the order of an epoch is the optimizer's to decide (policy brand, pool)
  bool logs = false;  // the next epoch's order decides where what was read is written (lcache)
  bool callsites = false;
  bool crash_trace = false;
  bool guard_regions = true;  // false: act as a kernel without MADV_GUARD_INSTALL
  const char* job = nullptr;  // SLUICE_JOB: the job that this process is part of; docs/report.md
  // Text of every option as given, nullptr if not given; static storage.
  const char* text[protocol::kOptionCount] = {};
};

extern Settings g_settings;

// Reads the environment and the file that SLUICE_CONFIG names. For a bad value prints one warning
// and uses the default. Not thread-safe: constructor only.
void read_settings();

}  // namespace sluice::preload
