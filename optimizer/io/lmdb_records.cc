#include "optimizer/io/lmdb_records.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "lmdb/database.h"
#include "lmdb/failure.h"
#include "lmdb/tree_walk.h"

namespace sluice::optimizer {

using policy::RecordList;
namespace {

// The least space that a record takes in a leaf page: its header and its entry in the page's table.
constexpr uint64_t kLeastRecord = sizeof(lmdb::NodeHeader) + sizeof(uint16_t);

void check_limits(const lmdb::Database& database, const LmdbLimits& limits) {
  const lmdb::Tree& tree = database.meta().records;
  if (database.file_pages() > limits.pages) {
    lmdb::fail("it has {} pages, more than {}", database.file_pages(), limits.pages);
  }
  if (tree.entries > limits.records) {
    lmdb::fail("it has {} records, more than {}", tree.entries, limits.records);
  }
  const uint64_t most = limits.index_bytes / database.page_size();
  if (tree.branch_pages > most || tree.leaf_pages > most - tree.branch_pages) {
    lmdb::fail("its records are on {} + {} pages of {} bytes, more than {} MiB", tree.branch_pages,
               tree.leaf_pages, database.page_size(), limits.index_bytes >> 20);
  }
}

RecordList list(const std::string& path, const std::atomic<bool>& stop, const LmdbLimits& limits) {
  const lmdb::Database database(path);
  check_limits(database, limits);
  const lmdb::Tree& tree = database.meta().records;
  RecordList records(2 * database.page_size());
  records.reserve(std::min(tree.entries, database.file_size() / kLeastRecord));
  lmdb::PageMap pages(database);
  lmdb::TreeWalk walk(database, tree, pages, lmdb::TreeWalk::Reads::kIndex);
  for (lmdb::Record record{}; walk.next(&record);) {
    if (stop.load(std::memory_order_relaxed)) lmdb::fail("there is no time to read it");
    // In a damaged file the meta page's count, which was checked, may be too small.
    if (records.size() >= limits.records) {
      lmdb::fail("it has more than {} records", limits.records);
    }
    if (record.key.size() > limits.key_bytes - records.key_bytes()) {
      lmdb::fail("its keys take more than {} bytes", limits.key_bytes);
    }
    if (!records.add(record.key, record.offset, static_cast<uint32_t>(record.length))) {
      lmdb::fail("its keys take more than 4 GiB");
    }
  }
  database.check_unchanged();
  records.shrink();
  return records;
}

// The reader's messages name the given path, which means nothing to a user if it is a descriptor.
std::string without_name(std::string text, const std::string& path) {
  if (path.empty()) return text;
  for (size_t at = 0; (at = text.find(path, at)) != std::string::npos; at += 2) {
    text.replace(at, path.size(), "it");
  }
  return text;
}

}  // namespace

bool looks_like_lmdb(std::span<const std::byte> beginning) {
  lmdb::PageHeader header{};
  uint32_t words[2]{};  // of the meta page: magic, version
  if (beginning.size() < sizeof header + sizeof words) return false;
  memcpy(&header, beginning.data(), sizeof header);
  memcpy(words, beginning.data() + sizeof header, sizeof words);
  return (header.flags & lmdb::kMetaPage) != 0 && words[0] == lmdb::kMagic &&
         words[1] == lmdb::kDataVersion;
}

LmdbListing list_lmdb_records(const std::string& path, const std::atomic<bool>& stop,
                              const LmdbLimits& limits) {
  try {
    return {list(path, stop, limits), {}};
  } catch (const lmdb::Failure& failure) {
    return {std::nullopt, without_name(failure.what(), path)};
  } catch (const std::exception& error) {  // no memory
    return {std::nullopt, error.what()};
  }
}

}  // namespace sluice::optimizer
