#include "policy/planner/head_planner.h"

#include <algorithm>

namespace sluice::policy {
namespace {

constexpr uint64_t kActiveNs = 2'000'000'000;  // a reader that paused for longer may have stopped
// Tensors that a reader has touched and not begun to read. One is where it reads now; fewer do
// where it did so in another file before.
constexpr uint64_t kLeastHeads = 2, kLeastAgain = 1;

bool active(const StridedReader& reader, uint64_t now_ns) {
  return now_ns - std::min(now_ns, reader.strides.last_ns()) <= kActiveNs;
}

}  // namespace

bool HeadPlanner::touches_heads(const PlannedFile& file, const StridedReader& reader) const {
  const uint64_t heads = reader.shares.heads_alone();
  if (file.heads_wanted || heads >= kLeastHeads) return true;
  return heads >= kLeastAgain && std::any_of(files_.begin(), files_.end(), [&](const auto& other) {
           return other.second.heads_wanted && other.second.users.contains(reader.session);
         });
}

void HeadPlanner::plan_file(FileId id, PlannedFile& file, SessionId session, uint64_t now_ns,
                            std::vector<PlannedRead>* reads) {
  const Mount& mount = queue_.of(file);
  auto tensor = std::partition_point(
      file.tensors.begin(), file.tensors.end(),
      [&](const Tensor& one) { return one.bytes.begin < file.heads_cursor.frontier; });
  for (; tensor != file.tensors.end() && mount.idle(now_ns) != 0; ++tensor) {
    const Range head{tensor->bytes.begin, tensor->bytes.begin + 1};
    const auto piece = gaps_.next(id, file, session, head, &file.heads_cursor);
    if (!piece) continue;
    if (!accounts_.room(session, piece->length())) return;
    queue_.start({id, session, kStrideStream, *piece}, now_ns, reads);
  }
}

void HeadPlanner::plan(uint64_t mount_id, uint64_t now_ns, std::vector<PlannedRead>* reads) {
  for (auto& [id, file] : files_) {
    if (file.mount != mount_id || !file.usable || file.tensors.empty()) continue;
    if (file.heads_cursor.frontier > file.tensors.back().bytes.begin) continue;
    for (const auto& [reader_id, reader] : file.readers) {
      const Accounts::Session* session = accounts_.find(reader.session);
      if (session == nullptr || !session->prefetch || session->options.size != 0) continue;
      if (!active(reader, now_ns) || !touches_heads(file, reader)) continue;
      file.heads_wanted = true;
      plan_file(id, file, reader.session, now_ns, reads);
      break;
    }
  }
}

}  // namespace sluice::policy
