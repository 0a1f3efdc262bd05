// What a command opened as it started: which of it is stored, and how it is fetched. Everything
// here may block in file systems: run it on an executor. Thread-safe.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "policy/samples/place_list.h"

namespace sluice::optimizer {

// The list of a start, as PlaceStore stores it: its parts are what was in memory of the files, in
// their order; a part's "sample" is its file.
inline constexpr uint64_t kStartFiles = 1 << 15;  // most files; PlaceList::samples of such a list

// What to store of the file: appended to `list`, if it is a regular file of a network or FUSE
// mount that has something in memory, as far as that is known.
void add_start_file(const std::string& path, bool no_cachestat, policy::PlaceList* list);

// Reads the parts of the file number `file` into the page cache, of which `parts` are all its
// parts, if the file still has its size and time of modification. The bytes read.
uint64_t fetch_start_file(const policy::PlaceList::File& file,
                          const std::vector<policy::PlaceList::Part>& parts);

// Of a compiled Python module, where its source is: the import compares their ages. Empty: no such.
std::string source_of_module(const std::string& path);

// Of an extension module, what its name ends in after the module's own, ABI and platform: as in
// _C.cpython-311-x86_64-linux-gnu.so. Empty: no such.
std::string extension_suffix(const std::string& path);

// Of a package's compiled module, where the import looks for the package first: an extension module
// of each suffix (importlib.machinery.FileFinder). Empty: no such.
std::vector<std::string> tried_before_package(const std::string& path,
                                              const std::set<std::string>& suffixes);

// Has the kernel look the path up, also if there is nothing.
void look_up_start_file(const std::string& path);

// Has the kernel list the folder.
void list_start_folder(const std::string& path);

}  // namespace sluice::optimizer
