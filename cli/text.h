// Text for people: sizes, times, aligned columns, and strings that are safe for a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/importance.h"
#include "protocol/metrics.h"
#include "protocol/options.h"

namespace sluice::cli {

// Control characters become '?': text from a peer or a file name cannot control the terminal.
std::string one_line(std::string_view text);

// `text` with every `what` replaced by `by`.
std::string replaced(std::string_view text, char what, std::string_view by);

// "512 KiB", "1.5 GiB"; powers of 1024.
std::string format_bytes(double bytes);

// "812 us", "3.1 s"; from nanoseconds.
std::string format_time(double nanoseconds);

// The values that an option takes, for help and manual: "SIZE (64K to 1T) or auto".
std::string values_of(const protocol::OptionInfo& info);
std::string values_of(const protocol::ImportanceKeyInfo& info);

// The job's or the optimizer's metric of this name, or nullptr.
const protocol::MetricInfo* find_metric(std::string_view name);

// The parts of `text` between separators; one, empty, of an empty text.
std::vector<std::string> split(std::string_view text, char separator);

// `text` in lines of at most `width` characters, each after `margin` and with a line end.
std::string wrapped(std::string_view text, std::string_view margin, size_t width);

// Rows of cells as columns two spaces apart, without trailing spaces. Numbers align right: the
// columns whose letter in `alignment` is 'r'. The last letter counts for all further columns.
std::string columns(const std::vector<std::vector<std::string>>& rows, std::string_view alignment);

}  // namespace sluice::cli
