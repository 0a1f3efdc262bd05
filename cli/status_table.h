// The optimizer's status as tables. Pure. The JSON need only be an object: unknown names are shown
// as they are, missing ones are left out.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace sluice::cli {

// Text with line ends, safe for a terminal.
std::string status_tables(const nlohmann::ordered_json& status);

}  // namespace sluice::cli
