// The optimizer's log. Any thread may log once open_log() has returned.
#pragma once

#include <fmt/format.h>

#include <string>

namespace sluice::optimizer {

enum class Level { kDebug, kInfo, kWarn, kError };

// Logs to stderr (`path` empty) or to a small rotating file.
void open_log(const std::string& path, const std::string& level);

// Raises the level of detail if `level` is more detailed than the present one. Unknown levels
// change nothing.
void widen_log(const std::string& level);

// Ends logging. Removes the file if nothing at warn or above was ever written.
void close_log();

bool logs(Level level);
void log_line(Level level, const std::string& line);

template <typename... Args>
void say(Level level, fmt::format_string<Args...> format, Args&&... args) {
  if (logs(level)) log_line(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace sluice::optimizer
