#include "cli/manual.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string_view>
#include <vector>

#include "cli/program.h"
#include "cli/text.h"

namespace sluice::cli {
namespace {

constexpr const char* kBefore = R"(.SH NAME
sluice \- feed I/O-bound jobs: the bytes that they ask for next are in memory
.SH SYNOPSIS
.B sluice run
.RI [ options ]
.B \-\-
.I command...
.br
.B sluice
.I command
.RI [ options ]
.SH DESCRIPTION
.B sluice run
starts an unmodified command with a preloaded library, which observes what the command reads. A
sidecar, sluice\-optimizer, prefetches what will be read next. The library starts it when the command
first opens data, and it ends a minute after its last job. No byte, order, error or exit status of the
command changes.
.PP
The other commands show what Sluice does, examine a machine or a mount, read files into memory
beforehand, and predict hit ratios. The program
.B sluice\-lmdb
makes and examines LMDB files.
.SH COMMANDS
)";

constexpr const char* kAfter = R"(.SH ENVIRONMENT
Each option of
.B sluice run
has a variable, which its description ends with. The command line has precedence, then the
environment, then the file that
.B SLUICE_CONFIG
names. With the variables alone a command is run as
.PP
.RS
LD_PRELOAD=/path/to/libsluice.so python3 train.py
.RE
.SH FILES
.TP
.I /tmp/sluice\-UID
sockets of a user's sidecars; only that user may enter it
.TP
.I ~/.cache/sluice
locations of datasets' samples, for the next run
.SH EXAMPLES
.nf
sluice run \-\-memory 8G \-\- python3 train.py
sluice status \-\-watch
sluice doctor /data
sluice warm /data/model
sluice status \-\-prometheus \-\-out /var/lib/prometheus/node\-exporter/sluice.prom
.fi
)";

// Text that roff prints as it is, but for code between backquotes, which is bold.
std::string roff(std::string_view text) {
  std::string out;
  bool bold = false;
  for (const char c : text) {
    if (c == '`') {
      out += bold ? "\\fR" : "\\fB";
      bold = !bold;
    } else if (c == '\\' || c == '-') {
      out += c == '-' ? "\\-" : "\\e";
    } else {
      out += c;
    }
  }
  // At the start of a line these are requests.
  if (!out.empty() && (out[0] == '.' || out[0] == '\'')) out.insert(0, "\\&");
  return out;
}

// The lines of `text`, with a break between them.
std::string lines_text(const std::string& text) {
  std::string out;
  for (const std::string& line : split(text, '\n')) {
    if (line.empty()) continue;
    out += (out.empty() ? "" : ".br\n") + roff(line) + "\n";
  }
  return out;
}

std::string heading(const CLI::Option& option) {
  if (option.get_positional()) return fmt::format(".I {}\n", roff(option.get_name()));
  std::string names;
  for (const std::string& name : option.get_snames()) names += "-" + name + ", ";
  for (const std::string& name : option.get_lnames()) names += "--" + name + ", ";
  names.resize(names.size() - 2);
  const std::string type = option.get_type_name();
  return type.empty() ? fmt::format(".B {}\n", roff(names))
                      : fmt::format(".BI \"{} \" {}\n", roff(names), roff(type));
}

std::vector<const CLI::App*> shown_commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::string command_text(const CLI::App& command, const std::string& before) {
  const std::string name = before + " " + command.get_name();
  std::string text =
      fmt::format(".SS \"{}\"\n{}", roff(name), lines_text(command.get_description()));
  for (const CLI::Option* option : command.get_options()) {
    if (option->check_lname("help") || option->check_lname("help-all")) continue;
    text += ".TP\n" + heading(*option) + lines_text(option->get_description());
  }
  if (!command.get_footer().empty()) text += ".PP\n" + lines_text(command.get_footer());
  for (const CLI::App* nested : shown_commands(command)) text += command_text(*nested, name);
  return text;
}

}  // namespace

std::string manual_page(const CLI::App& app) {
  std::string text = fmt::format(".TH SLUICE 1 \"\" \"Sluice {}\" \"User Commands\"\n{}",
                                 kProgramVersion, kBefore);
  for (const CLI::App* command : shown_commands(app)) text += command_text(*command, "sluice");
  return text + kAfter + ".SH EXIT STATUS\n" + lines_text(kExitStatuses);
}

}  // namespace sluice::cli
