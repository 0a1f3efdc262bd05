// What one run of a job learned about a dataset, for the next run: the location of each sample. As
// a file: the bytes "SLPLACES", a hash of all that follows (16 bytes), then one CBOR object (RFC
// 8949):
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

namespace sluice::policy {

struct PlaceList {
  struct File {
    std::string path;
    uint64_t size = 0;        // bytes; if it differs, the file's parts are invalid
    int64_t modified_ns = 0;  // since 1970; likewise
    bool operator==(const File&) const = default;
  };
  struct Part {
    uint64_t offset = 0;  // bytes
    uint32_t length = 0;  // bytes; 0 for a whole file
    uint32_t sample = 0;
    uint32_t file = 0;   // an index into `files`, or for a whole file into `whole`
    uint32_t whole = 0;  // 1: a whole file
    bool operator==(const Part&) const = default;
  };
  static_assert(sizeof(Part) == 24);

  std::string name;
  uint64_t samples = 0;
  std::vector<File> files;
  std::vector<std::string> whole;  // absolute
  std::vector<Part> parts;         // grouped by sample, each sample's in their order

  std::vector<uint8_t> encode() const;
  // False, and *problem is one line, if `bytes` are not a complete and consistent list.
  bool decode(std::span<const uint8_t> bytes, std::string* problem);
};

// The file's name for a dataset; distinct for distinct datasets.
std::string place_file_name(const std::string& name, uint64_t samples);

}  // namespace sluice::policy
