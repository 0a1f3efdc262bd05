// What a request costs on one mount in addition to its bytes: a busy disk, a volume with a limit on
// requests per second or a server with few threads takes as long for a page as for half a megabyte.
// Fitted to what is measured while the storage is busy: the time of a set of requests is
// `request_ns` for each request plus `byte_ns` for each byte. Pure; one thread.
#pragma once

#include <cstdint>

namespace sluice::policy {

class RequestCost {
 public:
  // `requests` of `bytes` in total took `ns`, with as many in flight as allowed.
  void add(uint64_t requests, uint64_t bytes, uint64_t ns);
  // The storage was not busy all the time: discard the unfinished slot.
  void interrupt() { slot_requests_ = slot_bytes_ = slot_ns_ = 0; }

  double request_ns() const { return request_ns_; }  // 0: no cost, or not known
  double byte_ns() const { return byte_ns_; }        // 0: not known
  // How many bytes cost as much as a request; 0: not known.
  uint64_t worth() const;

 private:
  void fit();

  // A slot spans several calls of add(), since large requests complete in bursts.
  uint64_t slot_requests_ = 0, slot_bytes_ = 0, slot_ns_ = 0;
  // Sums over slots, older slots with less weight: requests r, pages b, microseconds t.
  double rr_ = 0, rb_ = 0, bb_ = 0, rt_ = 0, bt_ = 0;
  double fastest_ = 0;  // pages a microsecond, of the fastest slot
  double request_ns_ = 0, byte_ns_ = 0;
};

}  // namespace sluice::policy
