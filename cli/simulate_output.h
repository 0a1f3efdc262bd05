// What `sluice simulate` shows: a table, CSV, a picture, advice.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/simulate_engine.h"
#include "cli/simulate_settings.h"

namespace sluice::cli {

// "1.2 GB (20 %)": the memory, and what share of the dataset it is.
std::string memory_text(uint64_t memory, uint64_t dataset);

// One line for each outcome: means of an epoch, the first left out. Pure.
std::string simulate_table(std::span<const Outcome> outcomes, const Workload& workload,
                           const Storage& storage);

// One line for each epoch of each outcome, with a heading. Bytes and seconds, no units. Pure.
std::string simulate_csv(std::span<const Outcome> outcomes, const Workload& workload,
                         const Storage& storage);

// Which policy and how much memory buys what: simulates a ladder of memory sizes. A made-up dataset
// is made smaller for that where it is large, which changes no share.
std::string simulate_advice(const SimulateSettings& settings, Workload* workload);

// Draws the CSV with matplotlib, in a Python of its own. Returns "" or one line of what is wrong.
std::string simulate_picture(const std::string& csv, const std::string& path);

}  // namespace sluice::cli
