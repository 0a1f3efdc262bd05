// `sluice report`: a run's end-of-run figures, or a benchmark's, as one page of HTML.
#pragma once

#include <string>

namespace sluice::cli {

struct ReportOptions {
  std::string file;                 // the file of SLUICE_REPORT, or a bench.json
  std::string out = "report.html";  // replaced completely, or not at all
};

// Prints the page's name to standard output, errors to standard error, and returns the exit status.
int report(const ReportOptions& options);

}  // namespace sluice::cli
