#include "optimizer/sessions/session.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "optimizer/io/memory.h"

namespace sluice::optimizer {

using policy::number;
using policy::SessionId;

SharedMemory::~SharedMemory() {
  if (shared_ != nullptr) munmap(shared_, sizeof(protocol::Shared));
}

UniqueFd SharedMemory::create(SessionId session, uint64_t token, std::string* reason) {
  UniqueFd fd(memfd_create("sluice-session", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ftruncate(fd.get(), sizeof(protocol::Shared)) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    *reason = std::string("shared memory: ") + strerror(errno);
    return {};
  }
  void* map =
      mmap(nullptr, sizeof(protocol::Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (map == MAP_FAILED) {
    *reason = std::string("shared memory: ") + strerror(errno);
    return {};
  }
  shared_ = static_cast<protocol::Shared*>(map);  // a fresh memfd is zeroed, as its atomics must be
  protocol::Header& header = shared_->header;
  header.magic = protocol::kSharedMagic;
  header.version = protocol::kVersion;
  header.slot_count = protocol::kSlots;
  header.ring_entries = protocol::kRingEntries;
  header.size = sizeof(protocol::Shared);
  header.session = number(session);
  header.token = token;
  return fd;
}

unsigned Session::live() const {
  return static_cast<unsigned>(std::count_if(
      processes.begin(), processes.end(), [](const Process& process) { return process.pid != 0; }));
}

bool Session::has_process(uint32_t pid) const {
  return pid == peer_pid ||
         std::any_of(processes.begin(), processes.end(),
                     [pid](const Process& process) { return process.pid == pid; });
}

uint32_t Session::parent_of(uint32_t pid) const {
  const auto at = std::find_if(processes.begin(), processes.end(),
                               [pid](const Process& process) { return process.pid == pid; });
  return at == processes.end() ? 0 : at->parent;
}

ClientMetrics Session::client_metrics() const {
  ClientMetrics sum = counts.freed;
  const protocol::Shared* shared = memory.get();
  for (size_t slot = 0; slot < processes.size(); ++slot) {
    if (processes[slot].pid == 0) continue;
    for (size_t i = 0; i < sum.size(); ++i) {
      sum[i] += shared->slots[slot].metrics[i].load(std::memory_order_relaxed);
    }
  }
  return sum;
}

uint64_t Session::waited_ns() const {
  const ClientMetrics sum = client_metrics();
  const auto of = [&sum](protocol::ClientMetric metric) {
    return sum[static_cast<size_t>(metric)];
  };
  // Where a loop reports its own waits, faults of its workers are not added.
  const bool loop = of(protocol::ClientMetric::loop_waits) != 0;
  return of(protocol::ClientMetric::waited_ns) + (loop ? 0 : mappings.waited_ns);
}

std::string command_line(uint32_t pid) {
  std::string text = read_text("/proc/" + std::to_string(pid) + "/cmdline");
  while (!text.empty() && text.back() == '\0') text.pop_back();
  std::replace(text.begin(), text.end(), '\0', ' ');
  return printable(text, 200);
}

}  // namespace sluice::optimizer
