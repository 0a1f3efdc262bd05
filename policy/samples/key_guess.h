// Guesses what all samples of a dataset over one key-value file consist of, from a few observed
// ones: the usual ways to find the record of sample i are tried, and one is accepted only while it
// agrees with all observations. Pure; one thread.
//
// A sample may have several records, always the same number, each found in its own way (image-%09d
// and label-%09d), or one that is the same for all samples. What a job reads once, such as __len__
// and the meta pages when it opens the file within its first sample, does no harm.
#pragma once

#include <cstdint>
#include <span>

#include "policy/samples/record_list.h"
#include "policy/samples/sample_guess.h"
#include "policy/util/ids.h"

namespace sluice::policy {

// Parts are whole values: merge_neighbours() joins no two of them, since a header is between any
// two values. `file`: Extent::file of the parts in this file; there must be no parts of other
// files. Makes some passes over the records: about 0.1 s for a million.
Guessing guess_keys(const RecordList& records, FileId file, uint64_t samples,
                    std::span<const Observation> seen);

}  // namespace sluice::policy
