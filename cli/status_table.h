// The optimizer's status as tables. Pure. Nothing is required of the JSON but that it is an
// object: names that are not known are shown as they are, missing ones are left out.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace sluice::cli {

// Text with line ends, safe for a terminal.
std::string status_tables(const nlohmann::ordered_json& status);

}  // namespace sluice::cli
