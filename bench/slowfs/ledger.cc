#include "bench/slowfs/ledger.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "bench/slowfs/clock.h"

namespace sluice::slowfs {
namespace {

constexpr const char* kNames[kKinds] = {"lookup",   "getattr", "open",   "opendir", "readdir",
                                        "readlink", "statfs",  "access", "read"};
// How long a thread's process is taken for known. Thread ids are used again, but not so soon.
constexpr uint64_t kKnownNs = 1'000'000'000;

std::string slurp(const char* path) {
  char text[2048];
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t got = read(fd, text, sizeof text);
  close(fd);
  return got > 0 ? std::string(text, static_cast<size_t>(got)) : std::string();
}

std::string command_of(int process) {
  if (process == 0) return "kernel";
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/comm", process);
  std::string name = slurp(path);
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return name.empty() ? std::string("unknown") : name;
}

}  // namespace

int Ledger::process_of(int tid) {
  if (tid <= 0) return 0;
  Thread& thread = threads_[tid];
  const uint64_t now = now_ns();
  if (thread.process != 0 && now < thread.known_until_ns) return thread.process;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/status", tid);
  const std::string status = slurp(path);
  const char* line = std::strstr(status.c_str(), "\nTgid:");
  if (line != nullptr) {
    thread.process = std::atoi(line + 6);  // NOLINT(cert-err34-c): the kernel's own number
  } else if (thread.process == 0) {
    thread.process = tid;  // gone before it was ever seen
  }
  thread.known_until_ns = now + kKnownNs;
  if (threads_.size() > 65536) {
    std::erase_if(threads_, [now](const auto& item) { return item.second.known_until_ns < now; });
    return process_of(tid);
  }
  return thread.process;
}

void Ledger::count(int tid, Kind kind, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const int process = process_of(tid);
  Account& account = accounts_[process];
  if (account.command.empty()) account.command = command_of(process);
  ++account.requests[static_cast<uint32_t>(kind)];
  if (kind == Kind::kRead) {
    account.bytes += bytes;
    ++account.sizes[std::min<uint64_t>((bytes + kPage - 1) / kPage, kSizes - 1)];
  }
}

void Ledger::count_failed() {
  const std::lock_guard lock(mutex_);
  ++failed_;
}

void Ledger::Account::add(const Account& other) {
  for (uint32_t i = 0; i < kKinds; ++i) requests[i] += other.requests[i];
  for (uint32_t i = 0; i < kSizes; ++i) sizes[i] += other.sizes[i];
  bytes += other.bytes;
}

nlohmann::json Ledger::Account::json() const {
  nlohmann::json out;
  if (!command.empty()) out["command"] = command;
  uint64_t all = 0;
  for (uint32_t i = 0; i < kKinds; ++i) {
    out[kNames[i]] = requests[i];
    all += requests[i];
  }
  out["requests"] = all;
  out["metadata"] = all - requests[static_cast<uint32_t>(Kind::kRead)];
  out["read_bytes"] = bytes;
  out["read_sizes"] = nlohmann::json::object();
  for (uint32_t i = 0; i < kSizes; ++i) {
    if (sizes[i] > 0) out["read_sizes"][std::to_string(i * kPage)] = sizes[i];
  }
  return out;
}

nlohmann::json Ledger::snapshot() const {
  const std::lock_guard lock(mutex_);
  Account totals;
  nlohmann::json processes = nlohmann::json::object();
  for (const auto& [process, account] : accounts_) {
    processes[std::to_string(process)] = account.json();
    totals.add(account);
  }
  nlohmann::json out{{"totals", totals.json()}, {"processes", processes}};
  out["totals"]["failed"] = failed_;
  return out;
}

}  // namespace sluice::slowfs
