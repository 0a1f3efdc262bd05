#include "cli/simulate.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "cli/program.h"
#include "cli/simulate_output.h"
#include "cli/simulate_settings.h"
#include "cli/simulate_systems.h"
#include "cli/text.h"

namespace sluice::cli {
namespace {

struct CloseFile {
  void operator()(FILE* file) const { fclose(file); }
};
using File = std::unique_ptr<FILE, CloseFile>;

[[noreturn]] void cannot_write(const std::string& path) {
  throw SimulateFailure(kExitProblem, fmt::format("cannot write {}: {}", path, strerror(errno)));
}

std::unique_ptr<Workload> workload_of(const SimulateSettings& settings) {
  if (settings.trace.empty()) return make_synthetic(settings.synthetic);
  return read_trace(settings.trace);
}

void print(const std::string& text) {
  if (fwrite(text.data(), 1, text.size(), stdout) != text.size() || fflush(stdout) != 0) {
    cannot_write("standard output");
  }
}

void write_csv(const SimulateSettings& settings, FILE* csv, const std::string& rows) {
  if (csv != nullptr &&
      (fwrite(rows.data(), 1, rows.size(), csv) != rows.size() || fflush(csv) != 0)) {
    cannot_write(settings.csv);
  }
}

void print_heading(const Workload& workload, const Storage& storage) {
  print(fmt::format("{}\n{} a request, {}/s, {} at a time; {} to compute a sample\n",
                    workload.description(), format_time(storage.latency * 1e9),
                    format_bytes(storage.bandwidth), storage.depth,
                    format_time(storage.compute * 1e9)));
  print(fmt::format("{}\n\n", workload.rounds() > 1 ? "Means of an epoch, the first left out:"
                                                    : "The only epoch:"));
}

// The stream records errors. REQUIRES: it is open for writing.
OnDecided write_decisions(FILE* file, const policy::SystemInfo& system, uint64_t memory) {
  return [file, &system, memory](const Decided& one) {
    static constexpr const char* kKinds[] = {"h",       "l",    "substituted",
                                             "h-for-l", "miss", "miss-other"};
    const std::string line = fmt::format(
        "{},{},{},{},{},{},{}\n", system.name, memory, one.epoch, one.requested,
        one.delivery.sample, kKinds[static_cast<size_t>(one.delivery.kind)], one.packages);
    (void)fwrite(line.data(), 1, line.size(), file);
  };
}

void run_systems(const SimulateSettings& settings, FILE* csv) {
  File decisions;
  if (!settings.decisions.empty()) {
    decisions.reset(fopen(settings.decisions.c_str(), "we"));
    if (!decisions) cannot_write(settings.decisions);
    (void)fputs("system,memory_bytes,epoch,requested,served,how,packages\n", decisions.get());
  }
  const std::unique_ptr<Workload> workload = make_synthetic(settings.synthetic);
  std::vector<SystemOutcome> outcomes;
  for (const MemorySize& memory : settings.memory) {
    for (const policy::SystemInfo* system : settings.systems) {
      const uint64_t bytes = memory.of(workload->dataset_bytes());
      const OnDecided on_decided =
          decisions ? write_decisions(decisions.get(), *system, bytes) : OnDecided();
      outcomes.push_back(
          play_system(settings.synthetic, settings.drift, *system, bytes, on_decided));
    }
  }
  if (decisions && (fflush(decisions.get()) != 0 || ferror(decisions.get()) != 0)) {
    cannot_write(settings.decisions);
  }
  print_heading(*workload, settings.storage);
  print(systems_table(outcomes, *workload, settings.storage));
  write_csv(settings, csv, systems_csv(outcomes, *workload, settings.storage));
}

void run(const SimulateSettings& settings) {
  // Open the outputs first, so that no minutes are spent on what cannot be written.
  File csv;
  if (!settings.csv.empty()) {
    csv.reset(fopen(settings.csv.c_str(), "we"));
    if (!csv) cannot_write(settings.csv);
  }
  if (!settings.systems.empty()) return run_systems(settings, csv.get());
  const std::unique_ptr<Workload> workload = workload_of(settings);
  std::vector<Outcome> outcomes;
  for (const MemorySize& memory : settings.memory) {
    for (const policy::PolicyInfo* policy : settings.policies) {
      outcomes.push_back(play(workload.get(), *policy, memory.of(workload->dataset_bytes())));
    }
  }
  const Storage& storage = settings.storage;
  print_heading(*workload, storage);
  print(simulate_table(outcomes, *workload, storage));
  const std::string rows = simulate_csv(outcomes, *workload, storage);
  write_csv(settings, csv.get(), rows);
  if (settings.advise) print("\n" + simulate_advice(settings, workload.get()));
  if (settings.picture.empty()) return;
  const std::string problem = simulate_picture(rows, settings.picture);
  if (!problem.empty()) throw SimulateFailure(kExitProblem, problem);
}

}  // namespace

void add_simulate_options(CLI::App* command, SimulateOptions* options) {
  std::string policies;
  for (const policy::PolicyInfo& info : policy::policies()) {
    policies += fmt::format("\n{}: {}", info.name, info.meaning);
  }
  const auto add = [command](const char* name, std::string* value, const char* type,
                             const std::string& help) {
    return command->add_option(name, *value, help)->type_name(type);
  };
  auto* trace = add("--trace", &options->trace, "FILE", "a recorded job instead of a made-up one");
  for (CLI::Option* made_up :
       {add("--samples", &options->samples, "N", "size of the dataset; default 1281167"),
        add("--size-distribution", &options->sizes, "SIZES",
            "of samples: fixed:BYTES, lognormal:MEDIAN,SIGMA or imagenet; default imagenet"),
        add("--epochs", &options->epochs, "N", "passes over the dataset; default 10"),
        add("--jobs", &options->jobs, "N", "jobs that share memory and dataset; default 1"),
        add("--seed", &options->seed, "N", "of sizes and orders; default 1")}) {
    made_up->excludes(trace);
  }
  add("--memory", &options->memory, "LIST",
      "sizes such as 8G, or shares of the dataset such as 20%; default 20%");
  auto* policy =
      add("--policy", &options->policy, "LIST", "or all; default lru,minio,belady" + policies);
  std::string systems;
  for (const policy::SystemInfo& info : policy::systems()) {
    systems += fmt::format("\n{}: {}", info.name, info.meaning);
  }
  auto* system =
      add("--system", &options->system, "LIST",
          "or all: whole training systems, which may select and substitute samples" + systems);
  system->excludes(policy)->excludes(trace);
  add("--drift", &options->drift, "SHARE",
      "of the samples whose loss is another in the next epoch; default 0")
      ->needs(system);
  add("--decisions", &options->decisions, "FILE", "write which sample each request got, and how")
      ->needs(system);
  add("--latency", &options->latency, "TIME", "of one request to storage; default 2ms");
  add("--bandwidth", &options->bandwidth, "SIZE", "of storage, bytes a second; default 200M");
  add("--depth", &options->depth, "N", "requests under way at a time; default 4");
  add("--compute", &options->compute, "TIME", "that a job computes for one sample; default 0");
  add("--csv", &options->csv, "FILE", "write the figures of every epoch");
  add("--picture", &options->picture, "FILE.png", "draw them (needs Python's matplotlib)")
      ->excludes(system);
  command->add_flag("--advise", options->advise, "say which policy and memory size buys what")
      ->excludes(system);
  command->footer(
      "Reading takes the longer of requests / depth x latency and bytes / bandwidth; computing\n"
      "covers as much of it as there is, the rest is stall. docs/simulate.md says more.");
}

int simulate(const SimulateOptions& options) {
  try {
    run(simulate_settings(options));
  } catch (const SimulateFailure& failure) {
    return failed(failure.status, one_line(failure.what()));
  } catch (const std::bad_alloc&) {
    return failed(kExitProblem, "not enough memory for a simulation of this size");
  }
  return 0;
}

}  // namespace sluice::cli
