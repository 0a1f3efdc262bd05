#include "optimizer/daemon/options.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "optimizer/control/parse.h"
#include "protocol/options.h"
#include "protocol/program_version.h"
#include "protocol/version.h"

namespace sluice::optimizer {
namespace {

const protocol::OptionInfo& info(protocol::Option option) { return protocol::option_info(option); }

std::string checked(protocol::Option option, const std::string& value) {
  const char* problem = protocol::option_problem(info(option), value.c_str());
  return problem == nullptr ? std::string() : "'" + value + "' " + problem;
}

CLI::Option* add(CLI::App& app, protocol::Option option, std::string* value) {
  return app.add_option("--" + std::string(info(option).flag), *value, info(option).help)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->check([option](const std::string& text) { return checked(option, text); });
}

}  // namespace

bool parse_command_line(int argc, char** argv, DaemonOptions* options, int* status) {
  CLI::App app{"The sidecar that reads ahead for jobs started with libsluice.so"};
  app.set_version_flag("--version", std::string("sluice-optimizer ") + protocol::kProgramVersion +
                                        " (protocol " + std::to_string(protocol::kVersion) + ")");
  std::string linger = info(protocol::Option::kLinger).default_text;
  std::string memory = "auto";
  std::string fallback;
  if (const char* forced = getenv(info(protocol::Option::kForceFallback).variable)) {
    fallback = forced;
  }
  add(app, protocol::Option::kSocket, &options->socket);
  add(app, protocol::Option::kLinger, &linger);
  add(app, protocol::Option::kLog, &options->log);
  add(app, protocol::Option::kMemory, &memory);
  add(app, protocol::Option::kForceFallback, &fallback);
  app.add_option("--log-file", options->log_file, "log file instead of one beside the socket");
  app.add_flag("--foreground", options->foreground, "stay attached and log to stderr");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    *status = app.exit(e);
    return false;
  } catch (const CLI::ParseError& e) {
    fprintf(stderr, "sluice-optimizer: %s\n", e.what());
    *status = 2;
    return false;
  }
  options->linger = static_cast<uint32_t>(strtoul(linger.c_str(), nullptr, 10));
  if (memory != "auto") protocol::parse_bytes(memory.c_str(), &options->memory);
  std::vector<std::string> problems;
  const SessionOptions forced = parse_options("force-fallback=" + fallback, &problems);
  options->no_uring = forced.no_uring;
  options->no_cachestat = forced.no_cachestat;
  options->no_pagemap_scan = forced.no_pagemap_scan;
  return true;
}

}  // namespace sluice::optimizer
