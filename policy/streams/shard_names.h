// The files before and after one in a numbered row: "model-00002-of-00008.safetensors",
// "train-000017.tar". Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice::policy {

struct ShardNames {
  std::string before, after;  // paths; empty: there is none
  bool of_all = false;        // the name says how many there are
};

// nullopt: the last part of the path has no number.
std::optional<ShardNames> shard_names(std::string_view path);

}  // namespace sluice::policy
