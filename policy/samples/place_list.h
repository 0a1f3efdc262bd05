// What one run of a job learned of a dataset, for the next one: which parts of which files each
// sample is made of. As a file: the bytes "SLPLACES", a hash of all that follows (16 bytes), then
// one CBOR object (RFC 8949):
//
//   {"version": 1, "name": text, "samples": number,
//    "files": [{"path": text, "size": bytes, "modified_ns": number}, ...],
//    "whole": bytes, the paths of whole files, each ended by a NUL,
//    "parts": bytes, an array of PlaceList::Part}
//
// Pure; one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sluice::optimizer {

struct PlaceList {
  struct File {
    std::string path;
    uint64_t size = 0;        // bytes; another one, and its parts are worth nothing
    int64_t modified_ns = 0;  // since 1970; likewise
    bool operator==(const File&) const = default;
  };
  struct Part {
    uint64_t offset = 0;  // bytes
    uint32_t length = 0;  // bytes; of a whole file 0
    uint32_t sample = 0;
    uint32_t file = 0;   // a place in `files`; of a whole file in `whole`
    uint32_t whole = 0;  // 1 if it is one
    bool operator==(const Part&) const = default;
  };
  static_assert(sizeof(Part) == 24);

  std::string name;
  uint64_t samples = 0;
  std::vector<File> files;
  std::vector<std::string> whole;  // absolute
  std::vector<Part> parts;         // those of one sample one after the other, in their order

  std::vector<uint8_t> encode() const;
  // False, and *problem one line, if these are not the bytes of a whole and consistent list.
  bool decode(std::span<const uint8_t> bytes, std::string* problem);
};

// The file's name for a dataset; other datasets have other names.
std::string place_file_name(const std::string& name, uint64_t samples);

}  // namespace sluice::optimizer
