// The version of Sluice as its users see it: `--version` of every program, the library's first
// debug line, the reports. CHANGELOG.md has an entry for it. The protocol's version is in
// version.h.
#pragma once

namespace sluice::protocol {

inline constexpr const char* kProgramVersion = "0.1.0";

}  // namespace sluice::protocol
