#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "cli/commands.h"
#include "cli/files.h"
#include "cli/program.h"
#include "cli/report_input.h"
#include "cli/report_page.h"
#include "cli/text.h"
#include "protocol/unique_fd.h"

namespace sluice::cli {
namespace {

constexpr off_t kMaxInput = 16 << 20;  // bytes; the library's reports stay below one MiB

// These return "" or the problem.

std::string read_whole(const std::string& path, std::string* text) {
  off_t size = 0;
  std::string problem;
  const UniqueFd fd = open_regular(path, &size, &problem);
  if (!fd) return problem;
  if (size > kMaxInput) return "too large for a report";
  text->resize(static_cast<size_t>(size));
  const ssize_t got = read_fully(fd.get(), text->data(), text->size());
  if (got < 0) return strerror(errno);
  text->resize(static_cast<size_t>(got));  // it may have been truncated in the meantime
  return "";
}

bool same_file(const std::string& one, const std::string& other) {
  struct stat a {};
  struct stat b {};
  return stat(one.c_str(), &a) == 0 && stat(other.c_str(), &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

int report_error(const std::string& path, const std::string& problem) {
  return failed(kExitProblem, one_line(path) + ": " + problem);
}

}  // namespace

int report(const ReportOptions& options) {
  std::string text;
  std::string problem = read_whole(options.file, &text);
  if (!problem.empty()) return report_error(options.file, problem);
  const std::optional<ReportInput> input = parse_report(text, &problem);
  if (!input) return report_error(options.file, problem);
  if (same_file(options.file, options.out))
    return report_error(options.out, "is what is to be read");
  const auto* run = std::get_if<RunReport>(&*input);
  const std::string page = run != nullptr ? run_page(*run, options.file)
                                          : bench_page(std::get<BenchReport>(*input), options.file);
  problem = replace_file(options.out, page);
  if (!problem.empty()) return report_error(options.out, problem);
  fmt::print("{}\n", one_line(options.out));
  return fflush(stdout) == 0 ? 0 : kExitProblem;
}

}  // namespace sluice::cli
