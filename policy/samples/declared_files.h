// Whether the files that a job declared as a dataset's samples are those that its samples read.
// Declarations of files may be guesses of an adapter. Pure; one thread.
#pragma once

#include <cstdint>
#include <span>

#include "policy/samples/extent.h"

namespace sluice::policy {

class DeclaredFiles {
 public:
  // A sample of which the files `declared` were declared was seen to read `parts`.
  void seen(std::span<const Extent> declared, std::span<const Extent> parts);
  // A sample of which files were declared is read, and they were read ahead: then it is reported,
  // if later, that they were opened.
  void was_offered(uint64_t now_ns);
  // A copy of such a file was opened.
  void opened() { offered_ = 0; }
  // Whether they are not. If so, the counts begin at 0 again.
  bool refuted();

  // Samples that contradict: fewer may be exceptions, or the last ones of what was declared before.
  static constexpr uint32_t kEnough = 3;
  static constexpr uint32_t kOfLate = 256;  // samples that count
  // Samples that were read ahead without a report that confirms any, over at least so many ns.
  static constexpr uint32_t kUnopened = 256;
  static constexpr uint64_t kUnopenedNs = 500'000'000;

 private:
  uint32_t confirmed_ = 0, contradicted_ = 0;
  uint32_t offered_ = 0;  // up to kUnopened
  uint64_t first_ns_ = 0, last_ns_ = 0;
};

}  // namespace sluice::policy
