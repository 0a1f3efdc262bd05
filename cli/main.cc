// The sluice program: its subcommands and their options.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/manual.h"
#include "cli/program.h"
#include "cli/simulate.h"
#include "cli/text.h"
#include "protocol/version.h"
#include "protocol/words.h"

namespace sluice::cli {
namespace {

constexpr const char* kSocketHelp =
    "where the optimizer listens; SLUICE_SOCKET, or else your own one";

constexpr const char* kHelpAll = "--help-all";

// The group of options that few users need.
constexpr const char* kFurtherOptions = "Further options";

// The layout of --help: options with their wrapped text beside them.
class HelpFormatter : public CLI::Formatter {
 public:
  // `all`: kFurtherOptions are shown, too.
  explicit HelpFormatter(bool all) : all_(all) {}
  // `run` takes a command that the parser does not know about.
  std::string make_usage(const CLI::App* app, std::string name) const override {
    if (app->get_name() == "run") return "Usage: sluice run [options] -- COMMAND...\n";
    return CLI::Formatter::make_usage(app, std::move(name));
  }
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    if (group == kFurtherOptions && !all_) return "";
    return CLI::Formatter::make_group(std::move(group), is_positional, std::move(options));
  }
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    std::string head = "  " + make_option_name(option, is_positional);
    if (!is_positional && !option->get_type_name().empty()) head += " " + option->get_type_name();
    std::string body;
    for (const std::string& line : split(option->get_description(), '\n')) {
      body += wrapped(line, std::string(kMargin, ' '), kWidth);
    }
    if (head.size() + 2 > kMargin) return head + "\n" + body;
    return head + body.substr(head.size());
  }

 private:
  static constexpr size_t kMargin = 26, kWidth = 98;

  const bool all_;
};

// Two lines: what the option does; its values, default and variable.
std::string option_help(const protocol::OptionInfo& info) {
  std::string help = fmt::format("{}\n{}", info.help, values_of(info));
  if (*info.default_text != '\0') help += fmt::format("; default {}", info.default_text);
  return help + fmt::format("; {}", info.variable);
}

void add_run_options(CLI::App* run, Given* given) {
  for (const protocol::OptionInfo& info : protocol::kOptions) {
    CLI::Option* option = run->add_option_function<std::string>(
        std::string("--") + info.flag,
        [given, &info](const std::string& value) {
          (*given)[static_cast<size_t>(info.option)] = value;
        },
        option_help(info));
    option->type_name("VALUE");
    if (!info.common) option->group(kFurtherOptions);
    if (info.kind == protocol::OptionKind::kPaths) {
      option->multi_option_policy(CLI::MultiOptionPolicy::Join)->delimiter(':');
    } else {
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    }
  }
}

std::vector<std::string> names_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

std::vector<std::string> names_of_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// "; did you mean WORD?" with the candidate that is nearest to `word`; empty if none is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string* nearest = nullptr;
  unsigned least = ~0U;
  for (const std::string& candidate : candidates) {
    const unsigned distance =
        protocol::edit_distance(word.data(), word.size(), candidate.data(), candidate.size());
    if (distance >= least) continue;
    least = distance;
    nearest = &candidate;
  }
  if (nearest == nullptr || !protocol::is_near(least, word.size())) return "";
  return fmt::format("; did you mean {}?", *nearest);
}

// The problem if the first word is no command where one is expected; else "".
std::string unknown_command(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty() || words[0].empty() || words[0][0] == '-') return "";
  const std::vector<std::string> commands = names_of_commands(app);
  if (std::find(commands.begin(), commands.end(), words[0]) != commands.end()) return "";
  return fmt::format("there is no command {}{}", words[0], did_you_mean(words[0], commands));
}

// The parser's message, with a suggestion for an unknown option.
std::string explained(const CLI::ParseError& error, const CLI::App& app,
                      const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  for (const CLI::App* parsed : app.get_subcommands()) command = parsed;
  const std::vector<std::string> known = names_of_options(*command);
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    if (name.size() < 3 || name.compare(0, 2, "--") != 0 ||
        std::find(known.begin(), known.end(), name) != known.end()) {
      continue;
    }
    const std::string meant = did_you_mean(name, known);
    if (!meant.empty()) return fmt::format("there is no option {}{}", name, meant);
  }
  return error.what();
}

// A command that was added to the parser, and what carries it out with the options that were
// parsed.
struct Command {
  CLI::App* app;
  std::function<int()> run;
};

Command add_run(CLI::App& app, const std::vector<std::string>& words) {
  auto given = std::make_shared<Given>();
  CLI::App* command = app.add_subcommand("run", "run a command with Sluice");
  add_run_options(command, given.get());
  command->set_help_all_flag(kHelpAll, "all options");
  return {command, [given, words] { return run(*given, words); }};
}

Command add_status(CLI::App& app) {
  auto status = std::make_shared<StatusOptions>();
  CLI::App* command = app.add_subcommand("status", "show what the optimizer is doing");
  auto* json = command->add_flag("--json", status->json, "as JSON, on one line");
  auto* watch =
      command->add_flag("--watch", status->watch, "again every second until the optimizer ends");
  auto* prometheus = command->add_flag("--prometheus", status->prometheus,
                                       "all your optimizers' metrics in Prometheus' text format");
  prometheus->excludes(json)->excludes(watch);
  command->add_option("--out", status->out, "write them to a file, whole or not at all")
      ->needs(prometheus)
      ->type_name("FILE");
  command->add_option("--socket", status->socket, kSocketHelp)->type_name("PATH");
  return {command, [status] { return print_status(*status); }};
}

Command add_stop(CLI::App& app) {
  auto socket = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("stop", "end the optimizer; jobs go on without it");
  command->add_option("--socket", *socket, kSocketHelp)->type_name("PATH");
  return {command, [socket] { return stop(*socket); }};
}

Command add_doctor(CLI::App& app) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* command =
      app.add_subcommand("doctor", "say what this machine, and mounts on it, offer to Sluice");
  command->add_flag("--json", options->json, "as JSON");
  command->add_flag("--verbose", options->verbose, "what each line means, and what to do about it");
  command->add_option("PATH", options->paths, "datasets, or folders of some");
  return {command, [options] { return doctor(*options); }};
}

Command add_simulate(CLI::App& app) {
  auto options = std::make_shared<SimulateOptions>();
  CLI::App* command = app.add_subcommand(
      "simulate", "what replacement policies and memory sizes would do for a job");
  add_simulate_options(command, options.get());
  return {command, [options] { return simulate(*options); }};
}

Command add_report(CLI::App& app) {
  auto page = std::make_shared<ReportOptions>();
  CLI::App* command =
      app.add_subcommand("report", "a page about a finished run, or about a bench.json");
  command->add_option("FILE", page->file, "what SLUICE_REPORT named, or build/bench.json")
      ->required();
  command->add_option("--out", page->out, "the page; report.html")->type_name("PATH");
  return {command, [page] { return report(*page); }};
}

Command add_warm(CLI::App& app) {
  auto options = std::make_shared<WarmOptions>();
  auto memory = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("warm", "read files into memory before they are needed");
  command->add_option("PATH", options->paths, "files, or folders of some")->required();
  command->add_option("--depth", options->depth, "how many are read at a time; 32")
      ->check(CLI::Range(1, 256))
      ->type_name("NUMBER");
  command->add_flag("--check", options->check, "read nothing, print how much is in memory");
  command->add_option("--memory", *memory, "at most so much; what memory can hold")
      ->type_name("SIZE");
  return {command, [options, memory] {
            if (!memory->empty() && !protocol::parse_bytes(memory->c_str(), &options->memory)) {
              return failed(kExitUsage, one_line(fmt::format("--memory: {} is no size", *memory)));
            }
            return warm(*options);
          }};
}

Command add_bench(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command =
      app.add_subcommand("bench", "how fast a file or folder is read, and what Sluice could gain");
  command->add_option("PATH", options->path, "a file, or a folder of some")->required();
  command->add_flag("--json", options->json, "as JSON");
  return {command, [options] { return bench(*options); }};
}

Command add_chunks(CLI::App& app) {
  auto options = std::make_shared<MakeChunksOptions>();
  auto files = std::make_shared<ChunkFilesOptions>();
  CLI::App* command = app.add_subcommand(
      "chunks", "samples that lie together in a cache folder, as chunks of many");
  command->require_subcommand(1);
  CLI::App* make = command->add_subcommand("make", "pack the files of folders in chunks");
  make->add_option("PATH", options->paths, "files and folders of samples")->required();
  make->add_option("--cache-dir", options->folder, "where; SLUICE_CACHE_DIR");
  make->add_option("--samples", options->samples, "files in a chunk")
      ->capture_default_str()
      ->check(CLI::Range(2, 1 << 16));
  make->add_option("--seed", options->seed, "of the order")->capture_default_str();
  make->add_option("--depth", options->depth, "chunks that are made at a time")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  auto path = std::make_shared<std::string>();
  CLI::App* tune = command->add_subcommand(
      "tune", "read files for ten seconds, and say how many a chunk should have there");
  tune->add_option("PATH", *path, "samples, or a folder of them")->required();
  CLI::App* list = command->add_subcommand("ls", "chunks, their samples and bytes");
  CLI::App* verify =
      command->add_subcommand("verify", "read every chunk whole, and say which are damaged");
  verify->add_flag("--remove", files->remove, "remove those");
  CLI::App* remove = command->add_subcommand("rm", "remove the chunks that were made");
  for (CLI::App* each : {list, verify, remove}) {
    each->add_option("DIR", files->folder, "the cache folder; SLUICE_CACHE_DIR");
  }
  return {command, [=] {
            if (make->parsed()) return make_chunks(*options);
            if (tune->parsed()) return tune_chunks(*path);
            if (remove->parsed()) return remove_chunks(files->folder);
            return verify->parsed() ? verify_chunks(*files) : print_chunks(*files);
          }};
}

Command add_docs(CLI::App& app) {
  auto manual = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("docs", "print docs/configuration.md")->group("");
  command->add_flag("--man", *manual, "print the manual page instead");
  return {command, [manual, &app] {
            return *manual ? print_document(manual_page(app)) : print_document(configuration());
          }};
}

int dispatch(std::vector<std::string> words) {
  RunArguments split;
  if (!words.empty() && words[0] == "run") {
    split = split_run_arguments({words.begin() + 1, words.end()});
    words = {"run"};
    words.insert(words.end(), split.options.begin(), split.options.end());
  }
  const bool all = std::find(words.begin(), words.end(), kHelpAll) != words.end();
  CLI::App app("Sluice feeds I/O-bound jobs: the bytes that they ask for next are in memory.",
               "sluice");
  app.set_version_flag("--version",
                       fmt::format("sluice {} (protocol {})", kProgramVersion, protocol::kVersion));
  app.formatter(std::make_shared<HelpFormatter>(all));  // also of the subcommands, which inherit it
  app.require_subcommand(1);
  const std::vector<Command> commands = {add_run(app, split.command),
                                         add_status(app),
                                         add_stop(app),
                                         add_doctor(app),
                                         add_simulate(app),
                                         add_report(app),
                                         add_warm(app),
                                         add_bench(app),
                                         add_chunks(app),
                                         add_docs(app)};

  if (words.empty()) {
    fmt::print("{}", app.help());
    return fflush(stdout) == 0 ? 0 : kExitProblem;
  }
  if (const std::string problem = unknown_command(app, words); !problem.empty()) {
    return failed(kExitUsage, one_line(problem + " (`sluice --help` lists them)"));
  }
  std::vector<std::string> reversed(words.rbegin(), words.rend());  // as the parser expects them
  try {
    app.parse(reversed);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return failed(kExitUsage, one_line(explained(error, app, words)));
  }
  for (const Command& command : commands) {
    if (command.app->parsed()) return command.run();
  }
  return kExitUsage;
}

}  // namespace
}  // namespace sluice::cli

int main(int argc, char** argv) {
  try {
    return sluice::cli::dispatch({argv + 1, argv + argc});
  } catch (const std::exception& failure) {
    // Not fmt: the failure may be that standard error cannot be written.
    fprintf(stderr, "sluice: %s\n", failure.what());
    return sluice::cli::kExitCannotRun;
  }
}
