// The pages of `sluice report`: one file each, without scripts and external resources.
#pragma once

#include <string>

#include "cli/report_input.h"

namespace sluice::cli {

// `source`: the name of the file with the figures.
std::string run_page(const RunReport& run, const std::string& source);
std::string bench_page(const BenchReport& bench, const std::string& source);

// What was trained in place of what, as a table and a picture; empty for a run without
// substitutions.
std::string substitutions_html(const RunReport& run);

// The parts of a page. `body` is HTML, the rest is text.
std::string page(const std::string& title, const std::string& source, const std::string& body);
struct Tile {
  std::string name, value, note;
  const char* tone = "";  // good, bad, or neither
};
std::string tiles_html(const std::vector<Tile>& tiles);

}  // namespace sluice::cli
