#include "optimizer/io/log.h"

#define SPDLOG_HEADER_ONLY
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>

namespace sluice::optimizer {
namespace {

constexpr size_t kMaxLogBytes = 1 << 20;

std::atomic<bool> trouble{false};
std::string log_path;

// Notes whether a message was logged for which the file must be preserved.
class TroubleSink : public spdlog::sinks::sink {
 public:
  void log(const spdlog::details::log_msg& message) override {
    if (message.level >= spdlog::level::warn) trouble = true;
  }
  void flush() override {}
  void set_pattern(const std::string&) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}
};

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

spdlog::level::level_enum from_text(const std::string& level) {
  return spdlog::level::from_str(level == "warn" ? "warning" : level);
}

}  // namespace

void open_log(const std::string& path, const std::string& level) {
  std::vector<spdlog::sink_ptr> sinks{std::make_shared<TroubleSink>()};
  try {
    if (path.empty()) {
      sinks.push_back(std::make_shared<spdlog::sinks::stderr_sink_mt>());
    } else {
      sinks.push_back(
          std::make_shared<spdlog::sinks::rotating_file_sink_mt>(path, kMaxLogBytes, 1));
      log_path = path;
    }
  } catch (const spdlog::spdlog_ex&) {
    // The optimizer runs without a log that cannot be written.
  }
  auto logger = std::make_shared<spdlog::logger>("sluice", sinks.begin(), sinks.end());
  logger->set_level(from_text(level));
  logger->flush_on(spdlog::level::info);
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %l %v");
  spdlog::set_default_logger(std::move(logger));
}

void widen_log(const std::string& level) {
  if (level.empty()) return;
  const auto wanted = from_text(level);
  spdlog::logger* logger = spdlog::default_logger_raw();
  if (logger != nullptr && wanted < logger->level()) logger->set_level(wanted);
}

bool logs(Level level) {
  spdlog::logger* logger = spdlog::default_logger_raw();
  return logger != nullptr && logger->should_log(to_spdlog(level));
}

void log_line(Level level, const std::string& line) {
  spdlog::logger* logger = spdlog::default_logger_raw();
  if (logger != nullptr) logger->log(to_spdlog(level), spdlog::string_view_t(line));
}

void close_log() {
  spdlog::shutdown();
  if (!log_path.empty() && !trouble) {
    unlink(log_path.c_str());
    const size_t dot = log_path.find_last_of('.');
    unlink((log_path.substr(0, dot) + ".1" + log_path.substr(dot)).c_str());
  }
  log_path.clear();
}

}  // namespace sluice::optimizer
