// Of what all samples of a dataset over one key-value file are made, after a few have been watched:
// the usual ways to find the record of sample i are tried, and one counts only while all that was
// watched agrees with it. Pure; one thread.
//
// A sample may be of several records, always as many, each found in its own way (image-%09d and
// label-%09d), or the same one for all samples. What a job reads once, such as __len__ and the meta
// pages when it opens the file within its first sample, disturbs nobody.
#pragma once

#include <cstdint>
#include <span>

#include "policy/samples/record_list.h"
#include "policy/samples/sample_guess.h"

namespace sluice::optimizer {

// Parts are whole values: merge_neighbours() takes no record away, since a header lies between
// values, so that they never touch. `file` is Extent::file of the parts that are this file's; there
// must be no others, they would belong to nothing. Takes some passes over the records: about 0.1 s
// for a million.
Guessing guess_keys(const RecordList& records, uint32_t file, uint64_t samples,
                    std::span<const Observation> seen);

}  // namespace sluice::optimizer
