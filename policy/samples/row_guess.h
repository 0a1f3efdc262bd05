// Guesses where all samples of a dataset are in a file of rows of one size (arrays, raw records),
// from a few observed ones. Pure; one thread.
//
// Two methods; a guess is accepted only while it agrees with all observations. Exact observations,
// from read() and its relatives, give where a row begins and how long it is: the row of sample i is
// at base + i * stride, for each of up to four rows that belong to a sample. Observations by pages
// are too large by up to 64 KiB on each side: there the whole file is assumed to be one row per
// sample, behind a header.
#pragma once

#include <cstdint>
#include <span>

#include "policy/samples/sample_guess.h"
#include "policy/util/ids.h"

namespace sluice::policy {

// `size` of the file, bytes; `file`: Extent::file of the parts in this file. Takes some
// milliseconds at most, and 16 bytes for each row.
Guessing guess_rows(uint64_t size, FileId file, uint64_t samples,
                    std::span<const Observation> seen);

}  // namespace sluice::policy
