// `sluice report`: a run's end-of-run figures, or a bench's, as one page of HTML.
#pragma once

#include <string>

namespace sluice::cli {

struct ReportOptions {
  std::string file;                 // what SLUICE_REPORT named, or a bench.json
  std::string out = "report.html";  // replaced as a whole, or not at all
};

// Prints the page's name to standard output, complaints to standard error, and returns the exit
// status.
int report(const ReportOptions& options);

}  // namespace sluice::cli
