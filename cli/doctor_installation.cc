// Sluice's own parts, the optimizer's socket, and FUSE for the demo and the benchmarks.
#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "cli/doctor.h"
#include "cli/optimizer_client.h"
#include "cli/program.h"
#include "cli/run_settings.h"
#include "cli/text.h"
#include "protocol/unique_fd.h"

namespace sluice::cli {
namespace {

Finding part(const char* finding, const char* file, const char* meaning, Level missing) {
  const std::string path = companion(file);
  if (!path.empty()) return {finding, Level::kGood, path, meaning, ""};
  return {finding, missing, fmt::format("{} is missing", file), meaning,
          "Build it (make), or install it beside or in ../lib of this program."};
}

Finding optimizer_socket() {
  const std::string socket = socket_of(chosen_socket(""));
  Finding finding{"optimizer", Level::kGood, "", "", ""};
  const Reply folder = check_folder(socket);
  if (folder.answer == Answer::kProblem) {
    return {"optimizer", Level::kBroken, folder.text,
            "The optimizer listens only in a folder that belongs to its user alone; jobs run as "
            "without Sluice until then.",
            folder.mend};
  }
  const Reply status = ask_status(socket);
  switch (status.answer) {
    case Answer::kGood:
      finding.value = fmt::format("running, listens on {}", one_line(socket));
      finding.meaning = "`sluice status` shows what it does.";
      break;
    case Answer::kNone:
      finding.value = fmt::format("not running; would listen on {}", one_line(socket));
      finding.meaning = "The first job that meets a dataset starts it.";
      break;
    case Answer::kProblem:
      finding.level = Level::kWarn;
      finding.value = status.text;
      finding.meaning = "Jobs run as without Sluice while it does not answer.";
      finding.mend = "`sluice stop`, or end the process sluice-optimizer.";
      break;
  }
  return finding;
}

Finding fuse() {
  const UniqueFd device(open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (device) {
    return {"fuse", Level::kGood, "/dev/fuse can be opened",
            "Demo and benchmarks can put a slow file system in front of the data.", ""};
  }
  return {"fuse", Level::kNote, fmt::format("/dev/fuse: {}", strerror(errno)),
          "Only demo and benchmarks want it: without it they use the disk.",
          "Load the fuse module, or give the container --device /dev/fuse."};
}

}  // namespace

void probe_installation(Findings* findings) {
  findings->push_back(
      part("library", "libsluice.so", "What `sluice run` puts into a command.", Level::kBroken));
  findings->push_back(part("config_reader", "libsluice_config.so",
                           "Reads SLUICE_CONFIG in a preloaded job.", Level::kWarn));
  findings->push_back(part("optimizer_program", "sluice-optimizer",
                           "The sidecar that reads ahead; the library starts it.", Level::kBroken));
  findings->push_back(optimizer_socket());
  findings->push_back(fuse());
}

}  // namespace sluice::cli
