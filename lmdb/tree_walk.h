// Visits the records of one tree of a Database in key order and checks everything on the way: page
// numbers and kinds, node bounds, key order, separators, depth, that no page is used twice, and at
// the end the counts in the meta page. Never reads outside the file, whatever the file contains.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lmdb/database.h"
#include "lmdb/failure.h"

namespace sluice::lmdb {

// Which pages of a file are in use; shared by the walks of its trees.
class PageMap {
 public:
  explicit PageMap(const Database& database);
  // Fails if one of `count` pages from `first` was claimed before or lies beyond the file's end.
  void claim(uint64_t first, uint64_t count);
  uint64_t claimed() const { return claimed_; }

 private:
  const Database& database_;
  std::vector<bool> used_;
  uint64_t claimed_ = 0;
};

struct Record {
  std::string_view key;  // valid until the next call of next()
  uint64_t key_offset;   // bytes from the beginning of the file
  uint64_t offset;       // of the value
  uint64_t length;       // of the value, bytes
  bool large;            // on overflow pages of its own
};

class TreeWalk {
 public:
  // kIndex reads branch and leaf pages only; kValues also the header of each large value.
  enum class Reads { kIndex, kValues };

  // Both references must outlive the walk.
  TreeWalk(const Database& database, const Tree& tree, PageMap& pages, Reads reads);

  // The next record; false after the last one. Fails at the first damage.
  bool next(Record* record);

 private:
  struct Frame {
    std::vector<uint8_t> page;
    uint64_t number = 0;
    unsigned nodes = 0;
    unsigned at = 0;  // the node to visit next
  };
  struct Node {
    NodeHeader header;
    unsigned at;  // bytes from the beginning of its page
    std::string_view key;
  };

  template <typename... Args>
  [[noreturn]] void damaged(uint64_t page, fmt::format_string<Args...> format, Args&&... args);

  void descend(uint64_t page);
  Node node(const Frame& frame, unsigned index);
  void visit_branch(Frame& frame);
  void visit_leaf(Frame& frame, Record* record);
  void place_value(const Frame& frame, const Node& node, Record* record);
  int compare(std::string_view a, std::string_view b) const;
  void check_order(uint64_t page, std::string_view key);
  void check_counts();

  const Database& database_;
  const Tree tree_;
  PageMap& pages_;
  const Reads reads_;

  std::vector<Frame> frames_;  // one for each level
  unsigned levels_ = 0;        // levels of frames_ in use
  std::string last_key_;
  std::string floor_;     // the separator: later keys must not be less
  bool any_ = false;      // last_key_ is set
  bool bounded_ = false;  // floor_ is set
  uint64_t branches_ = 0, leaves_ = 0, overflow_ = 0, entries_ = 0;
};

// Calls visit(record) for each record of the database, without a look at large values.
template <typename Visit>
void for_each_record(const Database& database, Visit visit) {
  PageMap pages(database);
  TreeWalk walk(database, database.meta().records, pages, TreeWalk::Reads::kIndex);
  for (Record record{}; walk.next(&record);) visit(record);
}

// The page numbers in the free list. Fails as a TreeWalk does, and if one of them is in use. Claims
// them.
uint64_t claim_free_pages(const Database& database, PageMap& pages);

}  // namespace sluice::lmdb
