#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/commands.h"
#include "cli/optimizer_client.h"
#include "cli/program.h"
#include "cli/run_settings.h"
#include "cli/status_table.h"
#include "cli/text.h"

namespace sluice::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::chrono::seconds kWatchInterval{1};
constexpr const char* kClearScreen = "\x1b[H\x1b[2J";

int report_error(const Reply& reply) {
  return failed(kExitProblem, reply.mend.empty() ? reply.text : reply.text + "; " + reply.mend);
}

}  // namespace

int print_status(const StatusOptions& options) {
  const std::string socket = socket_of(chosen_socket(options.socket));
  for (bool first = true;; first = false) {
    const Reply reply = ask_status(socket);
    // While watching, the optimizer's end is no error.
    if (reply.answer == Answer::kNone && !first) return 0;
    if (reply.answer != Answer::kGood) return report_error(reply);
    const Json status = Json::parse(reply.text, nullptr, false);
    if (!status.is_object())
      return report_error({Answer::kProblem, "the optimizer's status is no JSON"});
    if (options.json) {
      fmt::print("{}\n", status.dump(-1, ' ', false, Json::error_handler_t::replace));
    } else {
      if (options.watch && isatty(STDOUT_FILENO) != 0) fmt::print("{}", kClearScreen);
      fmt::print("{}", status_tables(status));
    }
    if (fflush(stdout) != 0) return kExitProblem;
    if (!options.watch) return 0;
    std::this_thread::sleep_for(kWatchInterval);
  }
}

int stop(const std::string& socket) {
  const Reply reply = stop_optimizer(socket_of(chosen_socket(socket)));
  switch (reply.answer) {
    case Answer::kGood:
      fmt::print("the optimizer has ended\n");
      return 0;
    case Answer::kNone:
      fmt::print("{}\n", reply.text);
      return 0;
    case Answer::kProblem:
      break;
  }
  return report_error(reply);
}

}  // namespace sluice::cli
