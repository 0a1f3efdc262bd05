// Whether lcache's log (log_plan.h) pays on a disk where packs would be used. Pure.
#pragma once

namespace sluice::policy {

// Rates of reads of a disk, several at a time, in bytes a second.
struct DiskRates {
  double scattered = 0;  // of about a sample's size
  double large = 0;      // of about a chunk's
};

// A log reads and writes every sample once an epoch, where packs only read: it pays where large
// reads are more than twice as fast as scattered ones (LCache, Figure 1: 5.2 to 7.4 times). Beyond
// that there is something left for what it takes otherwise. Where scattered reads are as fast as
// jobs, for which samples are copied and checked as well, writing all samples again and again would
// gain nothing, and wear the disk.
inline constexpr double kLogPaysTimes = 2.5, kLogPaysBelow = 500e6;

inline bool log_pays(const DiskRates& rates) {
  return rates.scattered > 0 && rates.scattered < kLogPaysBelow &&
         rates.large >= kLogPaysTimes * rates.scattered;
}

}  // namespace sluice::policy
