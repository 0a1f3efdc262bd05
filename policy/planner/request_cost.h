// What a request costs on one mount beside its bytes: a busy disk, a volume that is sold by
// requests a second or a server with few threads takes as long for a page as for half a megabyte.
// Fitted to what is seen while the storage is busy: the time that requests take is `request_ns` for
// each and `byte_ns` for each of their bytes. Pure; one thread.
#pragma once

#include <cstdint>

namespace sluice::optimizer {

class RequestCost {
 public:
  // So many requests of so many bytes together took `ns`, as many at a time as may be.
  void add(uint64_t requests, uint64_t bytes, uint64_t ns);
  // What is being added up was not all of a busy time.
  void interrupt() { slot_requests_ = slot_bytes_ = slot_ns_ = 0; }

  double request_ns() const { return request_ns_; }  // 0: nothing, or it is not known
  double byte_ns() const { return byte_ns_; }        // 0: not known
  // Bytes that cost as much as a request; 0: not known.
  uint64_t worth() const;

 private:
  void fit();

  // Several times are one slot: large requests end in bursts.
  uint64_t slot_requests_ = 0, slot_bytes_ = 0, slot_ns_ = 0;
  // Of slots, by weight, the older the less: requests r, pages b, microseconds t.
  double rr_ = 0, rb_ = 0, bb_ = 0, rt_ = 0, bt_ = 0;
  double fastest_ = 0;  // pages a microsecond, of a slot
  double request_ns_ = 0, byte_ns_ = 0;
};

}  // namespace sluice::optimizer
