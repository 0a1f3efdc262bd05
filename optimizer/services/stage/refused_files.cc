#include "optimizer/services/stage/refused_files.h"

#include <algorithm>

namespace sluice::optimizer {

using policy::SessionId;
namespace {

constexpr size_t kMostRefused = 1 << 16;

}  // namespace

void RefusedFiles::refuse(SessionId session, uint64_t device, uint64_t inode) {
  auto& refused = refused_[session];
  if (refused.size() < kMostRefused) refused.emplace(device, inode);
}

bool RefusedFiles::contains(uint64_t device, uint64_t inode) const {
  return std::any_of(refused_.begin(), refused_.end(), [&](const auto& of_session) {
    return of_session.second.contains({device, inode});
  });
}

}  // namespace sluice::optimizer
