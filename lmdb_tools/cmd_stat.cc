#include <algorithm>
#include <cstdio>
#include <memory>

#include "lmdb/tree_walk.h"
#include "lmdb_tools/commands.h"
#include "lmdb_tools/progress.h"

namespace sluice::lmdb {

void print_stat(const std::string& path) {
  const Database database(path);
  const Meta& meta = database.meta();
  PageMap pages(database);
  uint64_t shortest = UINT64_MAX;
  uint64_t longest = 0;
  uint64_t total = 0;
  uint64_t large = 0;
  TreeWalk walk(database, meta.records, pages, TreeWalk::Reads::kIndex);
  for (Record record{}; walk.next(&record);) {
    shortest = std::min(shortest, record.length);
    longest = std::max(longest, record.length);
    total += record.length;
    if (record.large) ++large;
  }
  const uint64_t free_pages = claim_free_pages(database, pages);
  database.check_unchanged();

  const uint64_t entries = meta.records.entries;
  fmt::print("file              {}\n", database.path());
  fmt::print("file size         {} ({})\n", database.file_size(),
             human_bytes(database.file_size()));
  fmt::print("map size          {} ({})\n", meta.map_size, human_bytes(meta.map_size));
  fmt::print("page size         {}\n", database.page_size());
  fmt::print("transaction       {}\n", meta.transaction);
  fmt::print("entries           {}\n", entries);
  fmt::print("depth             {}\n", meta.records.depth);
  fmt::print("branch pages      {}\n", meta.records.branch_pages);
  fmt::print("leaf pages        {}\n", meta.records.leaf_pages);
  fmt::print("overflow pages    {}\n", meta.records.overflow_pages);
  fmt::print("free pages        {}\n", free_pages);
  fmt::print("bytes of values   {} ({})\n", total, human_bytes(total));
  fmt::print("values in leaves  {}\n", entries - large);
  fmt::print("record mean       {:.1f}\n",
             entries == 0 ? 0.0 : static_cast<double>(total) / static_cast<double>(entries));
  fmt::print("record min        {}\n", entries == 0 ? 0 : shortest);
  fmt::print("record max        {}\n", longest);
  check_output();
}

}  // namespace sluice::lmdb
