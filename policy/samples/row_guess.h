// Where all samples of a dataset lie in a file of rows of one size (arrays, raw records), after a
// few have been watched. Pure; one thread.
//
// Two ways, and one counts only while all that was watched agrees with it. What was seen exactly,
// by read() and its relatives, gives where a row begins and how long it is: that of sample i is at
// base + i * stride, for each of up to four rows that belong to a sample. What was seen by pages is
// too much by up to 64 KiB on each side: there the whole file is one row for each sample, behind a
// header.
#pragma once

#include <cstdint>
#include <span>

#include "policy/samples/sample_guess.h"

namespace sluice::optimizer {

// `size` of the file, bytes; `file` is Extent::file of the parts that are this file's. Takes some
// milliseconds at most, and 16 bytes for each row.
Guessing guess_rows(uint64_t size, uint32_t file, uint64_t samples,
                    std::span<const Observation> seen);

}  // namespace sluice::optimizer
