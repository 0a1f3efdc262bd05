// Guesses where samples are that lie in the order of their indices, one size each, with something
// else between some of them: the chunks of an HDF5 dataset, between nodes of its index. What lies
// between is not known, so the place of a sample is bracketed by the nearest observed ones, and it
// is guessed only where the bracket is not much wider than the sample. Observing more samples
// narrows the brackets. Pure; one thread.
#pragma once

#include <cstdint>
#include <span>

#include "policy/samples/sample_guess.h"

namespace sluice::policy {

// Of each observation the largest part counts: smaller ones belong to an index. The samples may lie
// in several files, each with a range of indices. A guess may leave samples out. Takes some
// milliseconds at most, and 16 bytes for each sample.
Guessing guess_ordered_rows(uint64_t samples, std::span<const Observation> seen);

}  // namespace sluice::policy
