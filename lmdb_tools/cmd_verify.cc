#include <zlib.h>

#include <cstdio>
#include <memory>
#include <vector>

#include "lmdb/failure.h"
#include "lmdb/tree_walk.h"
#include "lmdb_tools/commands.h"
#include "lmdb_tools/image.h"
#include "lmdb_tools/progress.h"

namespace sluice::lmdb {
void verify(const VerifyOptions& options) {
  const Database database(options.path);
  PageMap pages(database);
  TreeWalk walk(database, database.meta().records, pages, TreeWalk::Reads::kValues);
  Progress progress("verify", database.meta().records.entries, 0, 0);
  uLong keys = 0;
  uLong values = 0;
  uint64_t count = 0;
  uint64_t bytes = 0;
  std::vector<uint8_t> value;
  for (Record record{}; walk.next(&record);) {
    value.resize(record.length);
    database.read(record.offset, value);
    keys = crc32_z(keys, reinterpret_cast<const Bytef*>(record.key.data()), record.key.size());
    values = crc32_z(values, value.data(), value.size());
    const char* problem = options.datum ? datum_problem(value) : nullptr;
    if (problem != nullptr) {
      fail("{}: record {} {}", database.path(), printable(record.key), problem);
    }
    bytes += record.length;
    ++count;
    progress.update(count, count, bytes);
  }
  const uint64_t free_pages = claim_free_pages(database, pages);
  database.check_unchanged();
  const uint64_t total = database.meta().last_page + 1;
  if (pages.claimed() > total) {
    fail("{} is damaged: {} pages are in use, {} exist", database.path(), pages.claimed(), total);
  }
  fmt::print("records   {}\nbytes     {}\npages     {} in use, {} free\n", count, bytes,
             total - free_pages, free_pages);
  fmt::print("crc32     {:08x} of the keys, {:08x} of the values, in key order\n", keys, values);
  fmt::print("sound{}\n", options.datum ? ", every record a Datum" : "");
  check_output();
}

}  // namespace sluice::lmdb
