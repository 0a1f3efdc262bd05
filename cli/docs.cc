#include <fmt/format.h>

#include <span>
#include <string>

#include "cli/commands.h"
#include "cli/manual.h"
#include "cli/program.h"
#include "cli/text.h"
#include "protocol/history.h"
#include "protocol/importance.h"
#include "protocol/metrics.h"
#include "protocol/options.h"

namespace sluice::cli {
namespace {

constexpr const char* kOpening = R"(# Configuration

<!-- Made by `sluice docs` from the tables in protocol/options.h, protocol/importance.h and
     protocol/metrics.h. -->

Every option has three spellings that mean the same:

    sluice run --size 50M -- python3 train.py
    SLUICE_SIZE=50M LD_PRELOAD=/path/to/libsluice.so python3 train.py
    sluice run --config sluice.toml -- python3 train.py     # size = "50M" in the file

The command line wins, then the environment, then the TOML file that `--config` or
`SLUICE_CONFIG` names. An empty variable is unset. In the file, sizes are text or whole numbers
of bytes, switches `true` or `false`, and lists of paths may be arrays of text:

    dataset = ["/data/train.mdb", "/data/val.mdb"]
    size = "50M"
    prefetch = true

`K`, `M`, `G` and `T` are powers of 1024; `M`, `MB` and `MiB` are the same; `1.5G` is fine.

A bad value ends `sluice run` with one line and exit status 2. A preloaded job gets one line and
the default. A file with a syntax error, an unknown key or a value of the wrong type counts as a
whole: `sluice run` ends with status 2, a preloaded job says so and runs without the file.
)";

constexpr const char* kPrometheus = R"(
## Prometheus

`sluice status --prometheus` prints these figures of each job for Prometheus, and `--out FILE` writes
them for node_exporter's textfile collector. The names begin with `sluice_`; `_ns` becomes `_seconds`,
`_permille` becomes `_ratio`, and what only grows ends with `_total`: `stall_ns` is
`sluice_stall_seconds_total`. The labels are `optimizer` (its process), `session`, `pid` and `command`
(80 bytes at most). The first 100 jobs have series. `sluice_optimizers` is the number of optimizers
that answered, of all memory cgroups of the user; without one it is 0, and the exit status 0.
`sluice_optimizers_silent` counts those that did not answer, and the exit status is then 1.
)";

}  // namespace

const char* const kExitStatuses =
    R"(`sluice run` becomes the command, so its exit status is the command's own. Before that it is 2
for a bad option, 125 if Sluice itself cannot start, 126 if the command cannot be executed and
127 if it is not found. `sluice status` gives 1 if no optimizer answers, `sluice stop` 1 if one
does not end in time, `sluice doctor` 1 if something is really broken, and `sluice report` 1 if
its input is no report or its page cannot be written.
)";

namespace {

// A table cell: '|' would end it, so it is escaped.
std::string cell(std::string_view text) { return replaced(text, '|', "\\|"); }

std::string code(const char* text) { return *text == '\0' ? "" : fmt::format("`{}`", text); }

std::string options_table() {
  std::string text =
      "\n## Options\n\n| option | variable | values | default | meaning |\n|---|---|---|---|---|\n";
  for (const protocol::OptionInfo& info : protocol::kOptions) {
    text += fmt::format("| `--{}` | `{}` | {} | {} | {} |\n", info.flag, info.variable,
                        cell(values_of(info)), code(info.default_text), cell(info.help));
  }
  return text;
}

std::string importance_table() {
  std::string text =
      "\n### Keys of `iis`\n\n`SLUICE_IMPORTANCE=iis:share=50,warmup=5`: what tunes importance, in "
      "any "
      "order.\n\n| key | values | default | meaning |\n|---|---|---|---|\n";
  for (const protocol::ImportanceKeyInfo& info : protocol::kImportanceKeys) {
    text += fmt::format("| `{}` | {} | {} | {} |\n", info.name, values_of(info), info.default_text,
                        cell(info.help));
  }
  return text;
}

std::string metrics_table(const char* title, std::span<const protocol::MetricInfo> metrics) {
  std::string text = fmt::format("\n## {}\n\n| name | unit | meaning |\n|---|---|---|\n", title);
  for (const protocol::MetricInfo& metric : metrics) {
    text += fmt::format("| `{}` | {} | {} |\n", metric.name, metric.unit, cell(metric.help));
  }
  return text;
}

}  // namespace

std::string configuration() {
  std::string text = kOpening;
  text += options_table();
  text += importance_table();
  text +=
      "\nThe figures of `sluice status --json` and of `SLUICE_REPORT` count from the start of\n";
  text += "a job and only grow.\n";
  text += metrics_table("Figures counted in the job", protocol::kClientMetrics);
  text += metrics_table("Figures counted in the optimizer", protocol::kSessionMetrics);
  text +=
      "\n`SLUICE_REPORT` also holds how the job went over time and in each epoch: objects `history`"
      "\nand `epochs` of one array for each field ([report](report.md)).\n";
  text += metrics_table("Fields of history", protocol::kHistoryFields);
  text += metrics_table("Fields of epochs", protocol::kEpochFields);
  text += kPrometheus;
  text += std::string("\n## Exit statuses\n\n") + kExitStatuses;
  return text;
}

int print_document(const std::string& text) {
  const bool written = fwrite(text.data(), 1, text.size(), stdout) == text.size();
  return written && fflush(stdout) == 0 ? 0 : kExitProblem;
}

}  // namespace sluice::cli
