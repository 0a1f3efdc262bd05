// Guesses which chunks of a file's datasets samples are, where the file's own index gives the
// chunks of each row (HDF5). Pure; one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/samples/sample_guess.h"

namespace sluice::policy {

// The chunks of a dataset whose rows are samples, each of whole rows.
struct RowChunks {
  struct Chunk {
    uint64_t offset = 0;  // bytes from the beginning of the file
    uint32_t length = 0;  // bytes; 0: the rows have none
  };
  uint64_t rows_each = 1;     // rows of a chunk
  std::vector<Chunk> chunks;  // by row / rows_each
};

// Sample i is row i of those datasets whose chunks were read for all observed samples; several
// datasets, such as images and labels, give a sample several parts. Takes some milliseconds, and 16
// bytes for each chunk of a sample.
Guessing guess_chunks(std::span<const RowChunks> datasets, FileId file, uint64_t samples,
                      std::span<const Observation> seen);

}  // namespace sluice::policy
