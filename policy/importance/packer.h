// Which L-samples are packed together, and which package is read next (iCache, section III-C,
// dynamic packaging): the decisions for the packaging thread and the loading thread. Pure; one
// thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "policy/importance/h_list.h"
#include "policy/importance/l_cache.h"
#include "policy/importance/split.h"
#include "policy/replacement/policy.h"
#include "policy/util/random.h"

namespace sluice::policy {

struct Package {
  uint64_t number = 0;          // never reused, never 0
  std::vector<Packed> samples;  // each once
  uint64_t bytes = 0;           // of all its samples
};

struct PackerSettings {
  uint32_t samples = 0;                    // of the dataset
  uint64_t package_bytes = kPackageBytes;  // a package is at least as large
  uint64_t most_bytes = 1 << 30;           // of all packages together; at least two packages
  uint64_t seed = 1;
};

class Packer {
 public:
  using SizeOf = std::function<uint32_t(SampleId)>;
  // `bytes_of` gives a sample's size; 0: not known yet, or nothing to pack.
  Packer(const PackerSettings& settings, SizeOf bytes_of);

  // A requested L-sample was not in the L-cache: it is packed first.
  void missed(SampleId sample);
  // Enough was missed for a package, or there is none yet.
  bool should_pack() const { return missed_bytes_ >= settings_.package_bytes || packages_.empty(); }
  // The package to write next: L-samples that were missed; then those of discarded packages; then
  // samples drawn at random, from all while there is room for more packages, and from existing
  // packages afterwards. Without samples if there is nothing to pack; otherwise it is in packages()
  // from now on, and samples that were in another package belong to it.
  Package pack(const HList& list);

  // The H-list has changed, or the packages exceed most_bytes: discards packages of which less than
  // half is still useful (the other samples have become important, or are packed elsewhere), and
  // the least useful until the rest fits. Returns their numbers; the files may be deleted.
  std::vector<uint64_t> renew(const HList& list);
  // The package is damaged or missing: its samples are as if they had never been packed.
  void lose(uint64_t number);

  // The package to read next: the one with most bytes of L-samples that are neither in the cache
  // nor `delivered` (those are no substitutes). nullptr: no package has any.
  const Package* next_to_load(const HList& list, const LCache& cache,
                              const std::function<bool(SampleId)>& delivered) const;

  const std::map<uint64_t, Package>& packages() const { return packages_; }
  uint64_t bytes() const { return bytes_; }  // of all packages
  // Bytes of a package that are useful: its L-samples that no newer package holds.
  uint64_t useful_bytes(const Package& package, const HList& list) const;

 private:
  // False: it is an H-sample, in this package already, or of no known size.
  bool add(SampleId sample, const HList& list, Package* package);
  void take_from(std::deque<SampleId>* queue, const HList& list, Package* package);
  void draw(const HList& list, Package* package);
  bool is_full(const Package& package) const { return package.bytes >= settings_.package_bytes; }

  const PackerSettings settings_;
  const SizeOf bytes_of_;
  Random random_;
  std::deque<SampleId> missed_, discarded_;
  uint64_t missed_bytes_ = 0;
  std::vector<bool> is_missed_;      // by sample: in missed_
  std::vector<uint64_t> packed_in_;  // by sample: the number of its package; 0: none
  std::map<uint64_t, Package> packages_;
  uint64_t bytes_ = 0;
  uint64_t made_ = 0;
};

}  // namespace sluice::policy
