#include "cli/doctor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/program.h"
#include "cli/text.h"

namespace sluice::cli {
namespace {

constexpr size_t kNameWidth = 18;
constexpr size_t kLineWidth = 100;

const char* word_of(Level level) {
  static constexpr const char* kWords[] = {"ok", "note", "warn", "broken"};
  return kWords[static_cast<size_t>(level)];
}

struct Section {
  std::string path;  // "": the machine
  Findings findings;
};

nlohmann::json as_json(const Findings& findings) {
  nlohmann::json list = nlohmann::json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"name", finding.name},
                    {"level", word_of(finding.level)},
                    {"value", finding.value},
                    {"meaning", finding.meaning},
                    {"mend", finding.mend}});
  }
  return list;
}

void print_json(const std::vector<Section>& sections, bool broken) {
  nlohmann::json all{{"version", kProgramVersion}, {"broken", broken}};
  all["machine"] = as_json(sections[0].findings);
  all["paths"] = nlohmann::json::array();
  for (size_t at = 1; at < sections.size(); ++at) {
    all["paths"].push_back(
        {{"path", sections[at].path}, {"findings", as_json(sections[at].findings)}});
  }
  // A path need not be UTF-8.
  fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_text(const std::vector<Section>& sections, bool verbose) {
  const std::string margin(6 + 2 + kNameWidth + 2, ' ');
  for (const Section& section : sections) {
    if (!section.path.empty()) fmt::print("\n{}\n", one_line(section.path));
    for (const Finding& finding : section.findings) {
      fmt::print("{:<6}  {:<{}}  {}\n", word_of(finding.level), finding.name, kNameWidth,
                 one_line(finding.value));
      if (!verbose) continue;
      fmt::print("{}", wrapped(finding.meaning, margin, kLineWidth));
      if (!finding.mend.empty()) {
        fmt::print("{}", wrapped("To mend: " + finding.mend, margin, kLineWidth));
      }
    }
  }
}

std::vector<const Finding*> of_level(const std::vector<Section>& sections, Level level) {
  std::vector<const Finding*> found;
  for (const Section& section : sections) {
    for (const Finding& finding : section.findings) {
      if (finding.level == level) found.push_back(&finding);
    }
  }
  return found;
}

std::string names_of(const std::vector<const Finding*>& findings) {
  std::vector<std::string> names;
  for (const Finding* finding : findings) {
    if (std::find(names.begin(), names.end(), finding->name) == names.end())
      names.push_back(finding->name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string without_stop(std::string text) {
  if (!text.empty() && text.back() == '.') text.pop_back();
  return text;
}

// The summary, one sentence.
std::string verdict(const std::vector<Section>& sections, bool verbose) {
  const std::string more =
      verbose ? "" : " (`sluice doctor --verbose` says what each means and how to mend it)";
  if (const auto broken = of_level(sections, Level::kBroken); !broken.empty()) {
    const Finding& first = *broken.front();
    return fmt::format("Sluice cannot work here: {}: {}{}{}.", first.name, one_line(first.value),
                       first.mend.empty() ? "" : "; " + without_stop(first.mend), more);
  }
  if (const auto warnings = of_level(sections, Level::kWarn); !warnings.empty()) {
    return fmt::format("Sluice works here, with less effect for {}{}.", names_of(warnings), more);
  }
  return "Sluice works here.";
}

}  // namespace

int doctor(const DoctorOptions& options) {
  std::vector<Section> sections(1);
  probe_kernel(&sections[0].findings);
  probe_limits(&sections[0].findings);
  probe_installation(&sections[0].findings);
  for (const std::string& path : options.paths) {
    sections.push_back({path, {}});
    probe_path(path, &sections.back().findings);
  }
  const bool broken = !of_level(sections, Level::kBroken).empty();
  if (options.json) {
    print_json(sections, broken);
  } else {
    print_text(sections, options.verbose);
    fmt::print("\n{}\n", verdict(sections, options.verbose));
  }
  return broken || fflush(stdout) != 0 ? kExitProblem : 0;
}

}  // namespace sluice::cli
