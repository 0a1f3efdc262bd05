// Room for copies: the stage's limits, and which copies the replacement policy retains. Pure; one
// thread. Files are numbers of a FileTable.
//
// Copies that are ahead take their room from the budget first; the policy has what they leave. So a
// policy that knows the order retains nearly the whole budget's worth of files that are read again,
// and prefetching costs it little: copies that were already read in this epoch are evicted first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "policy/copies/copy_mounts.h"
#include "policy/copies/copy_table.h"
#include "policy/replacement/policy.h"
#include "policy/replacement/table.h"
#include "policy/samples/file_table.h"
#include "policy/samples/wanted.h"
#include "policy/util/ids.h"

namespace sluice::policy {

class CopyRoom {
 public:
  // All outlive this.
  CopyRoom(FileTable* files, CopyTable* table, CopyMounts* mounts);

  // Retained copies stay as far as the new policy has room.
  void set_policy(PolicyKind kind);
  PolicyKind policy() const { return policy_kind_; }
  // The stage's limits: bytes in total, and the number of copies.
  void set_budget(uint64_t bytes, uint64_t copies);
  uint64_t budget() const { return budget_; }
  // The memory file system is full: what is there now is about what fits.
  void on_full();
  // The file's importance, for policies that use it.
  void set_importance(SampleFileId file, float importance);
  void end_session(SessionId session) { policy_->end_job(number(session)); }
  // The coming reads of all jobs; they replace the previous ones. A copy that is ahead and has no
  // reader any more is retained if the policy retains it, or spent.
  void predict(const UpcomingFiles& coming);

  // A copy that takes more is of no use.
  uint64_t limit() const { return std::min(budget_, limit_); }
  uint64_t retained() const { return policy_->used(); }
  // How many bytes, as charged, should be ahead of the readers so that no link idles. `beyond`:
  // files that the readers need ahead besides. `head_start`: so many more are of use, as far as
  // they do not evict what will be read again.
  uint64_t window(uint64_t beyond, uint64_t head_start, uint64_t now_ns);
  // Bytes, as charged, that can be guaranteed to stay in memory until they are read again: from now
  // on prefetched copies take at most the rest of the limit, until the next call, a smaller budget
  // or a change of policy. `beyond`: of JobOrders.
  uint64_t retainable(uint64_t beyond, uint64_t now_ns);

  bool may_add_copy() const;
  bool may_be_ahead(uint64_t bytes) const;
  // Room for so many more bytes ahead, without evicting too many copies that will be read again in
  // this epoch. False: there is none now.
  bool make_room_ahead(uint64_t bytes);
  // Evicts spent copies, and before them what the policy then has no room for, until there is room
  // for `bytes` more. False: there is too little to evict.
  bool make_room(uint64_t bytes);
  // The policy's capacity is what copies that are ahead, and `bytes` more, leave of the limit.
  void fit_policy(uint64_t bytes = 0);
  // An access that needs no decision of the policy.
  void passed(SampleFileId file) { policy_->passed(number(file)); }
  // Lets the policy decide about a copy that `session` has read. REQUIRES: it is not ahead.
  void offer(SessionId session, SampleFileId file, StagedCopy& copy);
  // The same about one that no reader has read, and that came with another.
  void offer_unread(SampleFileId file, StagedCopy& copy);
  void evict(SampleFileId file);  // no effect without a copy

 private:
  uint64_t keeps_busy(uint64_t spread, uint64_t now_ns, uint64_t depths) const;
  void make_policy(PolicyKind kind);
  void decided(SampleFileId file, StagedCopy& copy, Decision decision);
  void release_victims();

  FileTable& files_;
  CopyTable& table_;
  CopyMounts& mounts_;
  std::unique_ptr<Policy> policy_;
  PolicyKind policy_kind_ = PolicyKind::kAuto;
  std::vector<float> importance_;  // by file, as declared, whether or not the policy uses it
  uint64_t budget_ = 0, max_copies_ = 0, limit_ = UINT64_MAX;
  uint64_t window_ = 0;     // last result of window() without a head start
  uint64_t in_flight_ = 0;  // bytes that keep the link busy, at that time
  // Set by retainable(): what copies that are ahead may take, with those of readers that are out of
  // order, and without.
  uint64_t most_ahead_ = UINT64_MAX, most_window_ = UINT64_MAX;
  std::vector<SampleId> victims_;  // numbers of files
};

}  // namespace sluice::policy
