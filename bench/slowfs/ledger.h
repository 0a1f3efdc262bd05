// Requests and bytes, counted per process, when they arrive.
//
// The kernel names the thread that asks. It is looked up in /proc while it waits for the answer,
// and its process is charged: threads of a program, and io_uring's workers, whose threads belong
// to the process that owns the ring, all add up under one process id. Read-ahead is charged to
// the thread whose fault or call started it. Requests that the kernel makes on behalf of no process
// are charged to process 0.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <unordered_map>

namespace sluice::slowfs {

enum class Kind : uint32_t {
  kLookup,
  kGetattr,
  kOpen,
  kOpendir,
  kReaddir,
  kReadlink,
  kStatfs,
  kAccess,
  kRead,
  kCount,
};
inline constexpr uint32_t kKinds = static_cast<uint32_t>(Kind::kCount);

class Ledger {
 public:
  // One request of thread `tid`; `bytes` is what a read will return. Any thread.
  void count(int tid, Kind kind, uint64_t bytes = 0);

  // A read that was answered with an error.
  void count_failed();

  // {"totals": {...}, "processes": {"PID": {...}}}. Any thread.
  nlohmann::json snapshot() const;

 private:
  static constexpr uint64_t kPage = 4096;
  static constexpr uint32_t kSizes = 258;  // sizes in pages: 0, 1, ... 256, more

  struct Account {
    std::string command;
    std::array<uint64_t, kKinds> requests{};
    uint64_t bytes = 0;
    std::array<uint32_t, kSizes> sizes{};  // reads by size, rounded up to pages
    nlohmann::json json() const;
    void add(const Account& other);
  };
  struct Thread {
    int process = 0;
    uint64_t known_until_ns = 0;
  };

  int process_of(int tid);  // REQUIRES: mutex_ held

  mutable std::mutex mutex_;
  std::map<int, Account> accounts_;
  std::unordered_map<int, Thread> threads_;
  uint64_t failed_ = 0;
};

}  // namespace sluice::slowfs
