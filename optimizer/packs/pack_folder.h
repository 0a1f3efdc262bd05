// The folder in which a user's packs are, and the names in it. Blocks in the file system; any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "protocol/unique_fd.h"

namespace sluice::optimizer {

// BASE/sluice-packs-UID.
std::string packs_folder(const std::string& base);

// BASE/sluice-chunks-UID: packs that were made ahead of time, and are only read.
std::string chunks_folder(const std::string& base);

// Opens a folder of packs, which must be a real one, this user's and closed to others; it is made
// if it is missing and `make` is set. Without a descriptor *error is an errno, ENOENT if there is
// none, and *reason one line.
UniqueFd open_packs_folder(const std::string& path, bool make, int* error, std::string* reason);

// "0000002a.pack". Numbers grow: of two packs the higher one is the newer.
std::string pack_name(uint32_t number);

struct PackNames {
  std::vector<uint32_t> packs;         // ascending
  std::vector<std::string> leftovers;  // of writers that were killed, or of one that is at work
};

// What else is in the folder is left out. 0, or an errno.
int list_packs(int folder, PackNames* names);

}  // namespace sluice::optimizer
