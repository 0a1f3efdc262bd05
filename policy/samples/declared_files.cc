#include "policy/samples/declared_files.h"

#include <algorithm>

namespace sluice::policy {

void DeclaredFiles::seen(std::span<const Extent> declared, std::span<const Extent> parts) {
  const bool common = std::any_of(parts.begin(), parts.end(), [&](const Extent& part) {
    return std::any_of(declared.begin(), declared.end(),
                       [&](const Extent& one) { return one.file == part.file; });
  });
  ++(common ? confirmed_ : contradicted_);
  if (confirmed_ + contradicted_ < kOfLate) return;
  confirmed_ /= 2;
  contradicted_ /= 2;
}

void DeclaredFiles::was_offered(uint64_t now_ns) {
  if (offered_ == 0) first_ns_ = now_ns;
  if (offered_ < kUnopened) ++offered_;
  last_ns_ = now_ns;
}

bool DeclaredFiles::refuted() {
  const bool elsewhere = contradicted_ >= kEnough && contradicted_ > confirmed_;
  const bool unopened =
      offered_ == kUnopened && confirmed_ == 0 && last_ns_ - first_ns_ >= kUnopenedNs;
  if (!elsewhere && !unopened) return false;
  *this = {};
  return true;
}

}  // namespace sluice::policy
