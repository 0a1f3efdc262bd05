#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "lmdb/tree_walk.h"
#include "lmdb_tools/commands.h"

namespace sluice::lmdb {
namespace {

struct Range {
  std::string first_key, last_key;  // both inclusive
  uint64_t first_record = 0;        // its index in key order
  uint64_t records = 0;
  uint64_t bytes = 0;           // of values
  uint64_t begin = 0, end = 0;  // of the file, from the first value to the end of the last
};

// The rank of a record with `before` of `total` units before it: ranks get equal shares, and no
// later record is assigned to an earlier rank.
uint64_t rank_of(uint64_t before, uint64_t total, uint64_t ranks) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(before) * ranks / total);
}

std::vector<Range> cut(const Database& database, const RangesOptions& options) {
  const bool by_bytes = options.by == "bytes";
  uint64_t total = database.meta().records.entries;
  // A record's centre decides, so that a record at a border is assigned to the rank with its larger
  // part. Its key counts, too, plus one byte, so that an empty value still has a weight.
  const auto weight = [&](const Record& record) {
    return by_bytes ? record.length + record.key.size() + 1 : 1;
  };
  if (by_bytes) {
    total = 0;
    for_each_record(database, [&](const Record& record) { total += weight(record); });
  }
  std::vector<Range> ranges(options.ranks);
  uint64_t before = 0;
  uint64_t number = 0;
  for_each_record(database, [&](const Record& record) {
    const uint64_t mine = weight(record);
    Range& range = ranges[rank_of(before + mine / 2, total, options.ranks)];
    if (range.records == 0) {
      range.first_key = record.key;
      range.first_record = number;
      range.begin = record.offset;
    }
    range.last_key = record.key;
    range.begin = std::min(range.begin, record.offset);
    range.end = std::max(range.end, record.offset + record.length);
    range.bytes += record.length;
    ++range.records;
    before += mine;
    ++number;
  });
  return ranges;
}

std::string hex(const std::string& key) {
  std::string text;
  for (const char c : key) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

void print_json(const std::vector<Range>& ranges) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (size_t rank = 0; rank < ranges.size(); ++rank) {
    const Range& range = ranges[rank];
    nlohmann::ordered_json entry = {
        {"rank", rank}, {"records", range.records}, {"bytes", range.bytes}};
    if (range.records > 0) {
      entry["first_record"] = range.first_record;
      entry["first_key"] = printable(range.first_key);
      entry["last_key"] = printable(range.last_key);
      entry["first_key_hex"] = hex(range.first_key);
      entry["last_key_hex"] = hex(range.last_key);
      entry["file_begin"] = range.begin;
      entry["file_end"] = range.end;
    }
    list.push_back(std::move(entry));
  }
  fmt::print("{}\n", list.dump(2));
}

void print_text(const std::vector<Range>& ranges) {
  fmt::print("rank  records  bytes  first key  last key\n");
  for (size_t rank = 0; rank < ranges.size(); ++rank) {
    const Range& range = ranges[rank];
    fmt::print("{}  {}  {}  {}  {}\n", rank, range.records, range.bytes,
               range.records == 0 ? "-" : printable(range.first_key),
               range.records == 0 ? "-" : printable(range.last_key));
  }
}

}  // namespace

void ranges(const RangesOptions& options) {
  const Database database(options.path);
  const std::vector<Range> ranges = cut(database, options);
  database.check_unchanged();
  if (options.json) {
    print_json(ranges);
  } else {
    print_text(ranges);
  }
  check_output();
}

}  // namespace sluice::lmdb
