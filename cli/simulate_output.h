// The output of `sluice simulate`: a table, CSV, a picture, advice.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/simulate_engine.h"
#include "cli/simulate_settings.h"

namespace sluice::cli {

// "1.2 GB (20 %)": the memory, and its share of the dataset.
std::string memory_text(uint64_t memory, uint64_t dataset);

// One line for each outcome: means per epoch, without the first. Pure.
std::string simulate_table(std::span<const Outcome> outcomes, const Workload& workload,
                           const Storage& storage);

// One line for each epoch of each outcome, with a heading. Bytes and seconds, no units. Pure.
std::string simulate_csv(std::span<const Outcome> outcomes, const Workload& workload,
                         const Storage& storage);

// Which policy and how much memory have which effect: simulates a ladder of memory sizes. A large
// synthetic dataset is scaled down for that, which changes no share.
std::string simulate_advice(const SimulateSettings& settings, Workload* workload);

// Draws the CSV with matplotlib, in a Python process of its own. Returns "" or the problem.
std::string simulate_picture(const std::string& csv, const std::string& path);

}  // namespace sluice::cli
