#include "preload/session/connection.h"

#include <cerrno>

#include "preload/base/sys.h"
#include "preload/session/identity.h"
#include "protocol/ring_io.h"

namespace sluice::preload {

constinit std::atomic<Connection*> g_connection{nullptr};

namespace {

constexpr uint64_t kSeenNs = 1'000'000'000;  // for which a pid's check stays valid

// Written with the session's lock held.
constinit Connection g_connections[kMaxConnections] = {};
constinit uint32_t g_connection_count = 0;
constinit uint64_t g_time_namespace = 0;  // inode, when the session began
constinit std::atomic<int> g_optimizer_pid{0};
constinit std::atomic<uint64_t> g_optimizer_began{0};    // see process_began()
constinit std::atomic<uint64_t> g_optimizer_seen_ns{0};  // when its pid was last checked to be its
constinit std::atomic<bool> g_elsewhere{false};          // now in another pid or time namespace

}  // namespace

const Connection* connections() { return g_connections; }

bool may_connect() { return g_connection_count != kMaxConnections; }

void publish_connection(protocol::Shared* shared, int optimizer_pid) {
  g_optimizer_pid = optimizer_pid;
  g_optimizer_began = process_began(optimizer_pid);
  g_optimizer_seen_ns = sys::now_ns();
  g_time_namespace = time_namespace();
  g_elsewhere = false;
  Connection& connection = g_connections[g_connection_count];
  connection.shared = shared;
  connection.number = g_connection_count++;
  connection.slot.store(protocol::claim_slot(*shared, static_cast<uint32_t>(sys::pid())),
                        std::memory_order_release);
  g_connection.store(&connection, std::memory_order_release);
}

void connection_after_fork() {
  Connection* connection = g_connection.load(std::memory_order_relaxed);
  if (connection == nullptr) return;
  // getppid() is 0 if the parent is in another pid namespace.
  if (sys::call(SYS_getppid) == 0 ||
      (g_time_namespace != 0 && time_namespace() != g_time_namespace)) {
    g_elsewhere = true;
  }
  if (g_elsewhere.load(std::memory_order_relaxed)) {
    connection->slot.store(nullptr, std::memory_order_release);
    return;
  }
  connection->slot.store(
      protocol::claim_slot(*connection->shared, static_cast<uint32_t>(sys::pid())),
      std::memory_order_release);
}

bool session_is_lost() {
  const Connection* connection = g_connection.load(std::memory_order_acquire);
  return connection == nullptr ||
         connection->shared->header.closed.load(std::memory_order_acquire) != 0 ||
         g_elsewhere.load(std::memory_order_relaxed) || optimizer_died();
}

bool samples_wanted() {
  const Connection* connection = g_connection.load(std::memory_order_acquire);
  return connection != nullptr &&
         connection->shared->header.samples_idle.load(std::memory_order_relaxed) == 0;
}

bool pages_wanted() {
  const Connection* connection = g_connection.load(std::memory_order_acquire);
  return connection != nullptr &&
         connection->shared->header.pages_wanted.load(std::memory_order_relaxed) != 0 &&
         connection->shared->header.closed.load(std::memory_order_relaxed) == 0;
}

// The pid may have been reused by another process: checked once in kSeenNs.
bool optimizer_died() {
  const Connection* connection = g_connection.load(std::memory_order_acquire);
  if (connection == nullptr ||
      connection->shared->header.closed.load(std::memory_order_acquire) != 0) {
    return false;
  }
  const int pid = g_optimizer_pid.load(std::memory_order_relaxed);
  if (g_elsewhere.load(std::memory_order_relaxed)) return false;  // pids differ in this namespace
  if (sys::call(SYS_kill, pid, 0) == -ESRCH) return true;
  const uint64_t began = g_optimizer_began.load(std::memory_order_relaxed);
  const uint64_t now = sys::now_ns();
  if (began == 0 || now - g_optimizer_seen_ns.load(std::memory_order_relaxed) < kSeenNs) {
    return false;
  }
  const uint64_t begins = process_began(pid);
  if (begins != 0 && begins != began) return true;
  g_optimizer_seen_ns.store(now, std::memory_order_relaxed);
  return false;
}

bool session_of_file_lives(uint32_t file) {
  const Connection* connection = g_connection.load(std::memory_order_acquire);
  return !session_is_lost() && file >> kFileIdBits == connection->number;
}

uint32_t in_session(uint32_t id) {
  const Connection* connection = g_connection.load(std::memory_order_acquire);
  return connection == nullptr ? 0 : id | connection->number << kFileIdBits;
}

}  // namespace sluice::preload
