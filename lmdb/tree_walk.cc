#include "lmdb/tree_walk.h"

#include <cstring>

namespace sluice::lmdb {
namespace {

template <typename T>
T load(const uint8_t* from) {
  T value;
  memcpy(&value, from, sizeof value);
  return value;
}

PageHeader header_of(const std::vector<uint8_t>& page) { return load<PageHeader>(page.data()); }

}  // namespace

PageMap::PageMap(const Database& database) : database_(database), used_(database.file_pages()) {
  claim(0, 2);  // the meta pages
}

void PageMap::claim(uint64_t first, uint64_t count) {
  if (first >= used_.size() || count > used_.size() - first) {
    fail("{} is truncated: it is {} pages long and refers to page {}", database_.path(),
         used_.size(), first + count - 1);
  }
  for (uint64_t page = first; page < first + count; ++page) {
    if (used_[page]) fail("{} is damaged: page {} is used twice", database_.path(), page);
    used_[page] = true;
  }
  claimed_ += count;
}

TreeWalk::TreeWalk(const Database& database, const Tree& tree, PageMap& pages, Reads reads)
    : database_(database), tree_(tree), pages_(pages), reads_(reads) {
  if ((tree.flags & kDuplicates) != 0) {
    fail("{} holds several values for a key (MDB_DUPSORT), which training records do not",
         database.path());
  }
  if (tree.root == kNoPage) return;
  frames_.resize(tree.depth);
  descend(tree.root);
}

template <typename... Args>
void TreeWalk::damaged(uint64_t page, fmt::format_string<Args...> format, Args&&... args) {
  fail("{} is damaged: page {} {}", database_.path(), page,
       fmt::format(format, std::forward<Args>(args)...));
}

void TreeWalk::descend(uint64_t page) {
  const bool leaf = levels_ + 1 == tree_.depth;
  pages_.claim(page, 1);
  Frame& frame = frames_[levels_];
  frame.page.resize(database_.page_size());
  database_.read(page * database_.page_size(), frame.page);
  const PageHeader header = header_of(frame.page);
  const unsigned kind = header.flags & kPageKinds;
  if (header.number != page) damaged(page, "calls itself page {}", header.number);
  if (kind != (leaf ? kLeafPage : kBranchPage)) {
    damaged(page, "is not the {} page that belongs there", leaf ? "leaf" : "branch");
  }
  if (header.lower < sizeof(PageHeader) || header.lower % 2 != 0 || header.upper < header.lower ||
      header.upper > database_.page_size()) {
    damaged(page, "has its free space from {} to {}", header.lower, header.upper);
  }
  frame.number = page;
  frame.nodes = (header.lower - sizeof(PageHeader)) / sizeof(uint16_t);
  frame.at = 0;
  if (frame.nodes < (leaf ? 1U : 2U)) damaged(page, "has {} entries", frame.nodes);
  ++levels_;
  ++(leaf ? leaves_ : branches_);
}

TreeWalk::Node TreeWalk::node(const Frame& frame, unsigned index) {
  const auto size = static_cast<unsigned>(frame.page.size());
  const PageHeader page = header_of(frame.page);
  const unsigned at =
      load<uint16_t>(frame.page.data() + sizeof(PageHeader) + index * sizeof(uint16_t));
  if (at < page.upper || at + sizeof(NodeHeader) > size) {
    damaged(frame.number, "has entry {} at byte {}", index, at);
  }
  const auto header = load<NodeHeader>(frame.page.data() + at);
  if (header.key_size > kMaxKey || at + sizeof(NodeHeader) + header.key_size > size) {
    damaged(frame.number, "has a key of {} bytes in entry {}", header.key_size, index);
  }
  const auto* key = reinterpret_cast<const char*>(frame.page.data() + at + sizeof(NodeHeader));
  return {header, at, {key, header.key_size}};
}

bool TreeWalk::next(Record* record) {
  while (levels_ > 0) {
    Frame& frame = frames_[levels_ - 1];
    if (frame.at == frame.nodes) {
      --levels_;
    } else if (levels_ < tree_.depth) {
      visit_branch(frame);
    } else {
      visit_leaf(frame, record);
      return true;
    }
  }
  check_counts();
  return false;
}

// The first key of a branch page is meaningless and may be empty; each other key is greater than
// all keys before it and not greater than any key after it.
void TreeWalk::visit_branch(Frame& frame) {
  const Node child = node(frame, frame.at);
  if (frame.at > 0) {
    if (any_ && compare(child.key, last_key_) <= 0) {
      damaged(frame.number, "separates its children at a key that came before");
    }
    floor_ = child.key;
    bounded_ = true;
  }
  ++frame.at;
  descend(child.header.low | static_cast<uint64_t>(child.header.high) << 16 |
          static_cast<uint64_t>(child.header.flags) << 32);
}

void TreeWalk::visit_leaf(Frame& frame, Record* record) {
  const Node leaf = node(frame, frame.at);
  if ((leaf.header.flags & (kTreeNode | kDuplicatesNode)) != 0) {
    fail("{} has named databases in it, which training records do not need", database_.path());
  }
  check_order(frame.number, leaf.key);
  record->key = leaf.key;
  record->key_offset = frame.number * database_.page_size() + leaf.at + sizeof(NodeHeader);
  place_value(frame, leaf, record);
  ++frame.at;
  ++entries_;
}

void TreeWalk::place_value(const Frame& frame, const Node& node, Record* record) {
  const uint64_t page_size = database_.page_size();
  const uint64_t at = node.at + sizeof(NodeHeader) + node.header.key_size;
  record->length = node.header.low | static_cast<uint64_t>(node.header.high) << 16;
  record->large = (node.header.flags & kBigNode) != 0;
  if (!record->large) {
    if (at + record->length > page_size) {
      damaged(frame.number, "has a value of {} bytes that does not fit", record->length);
    }
    record->offset = frame.number * page_size + at;
    return;
  }
  if (at + sizeof(uint64_t) > page_size) damaged(frame.number, "has no room for a page number");
  const auto first = load<uint64_t>(frame.page.data() + at);
  uint64_t count = (sizeof(PageHeader) + record->length + page_size - 1) / page_size;
  if (first < database_.file_pages() && reads_ == Reads::kValues) {
    uint8_t bytes[sizeof(PageHeader)];
    database_.read(first * page_size, bytes);
    const auto header = load<PageHeader>(bytes);
    const uint64_t stated = header.lower | static_cast<uint64_t>(header.upper) << 16;
    if (header.number != first) damaged(first, "calls itself page {}", header.number);
    if ((header.flags & kPageKinds) != kOverflowPage) damaged(first, "holds no large value");
    if (stated < count) damaged(first, "has {} pages for {} bytes", stated, record->length);
    count = stated;  // may be larger: the value replaced a longer one
  }
  pages_.claim(first, count);
  overflow_ += count;
  record->offset = first * page_size + sizeof(PageHeader);
}

int TreeWalk::compare(std::string_view a, std::string_view b) const {
  if ((tree_.flags & kIntegerKeys) != 0 && a.size() == b.size() &&
      (a.size() == sizeof(uint64_t) || a.size() == sizeof(uint32_t))) {
    uint64_t x = 0;
    uint64_t y = 0;
    memcpy(&x, a.data(), a.size());
    memcpy(&y, b.data(), b.size());
    return x < y ? -1 : static_cast<int>(x > y);
  }
  if ((tree_.flags & kReverseKeys) != 0) {
    const std::string x(a.rbegin(), a.rend());
    return x.compare(std::string(b.rbegin(), b.rend()));
  }
  return a.compare(b);
}

void TreeWalk::check_order(uint64_t page, std::string_view key) {
  if (any_ && compare(last_key_, key) >= 0) damaged(page, "has its keys out of order");
  if (bounded_ && compare(key, floor_) < 0) damaged(page, "has a key that belongs before it");
  last_key_ = key;
  any_ = true;
  bounded_ = false;
}

void TreeWalk::check_counts() {
  const bool overflow = reads_ == Reads::kIndex || overflow_ == tree_.overflow_pages;
  if (entries_ == tree_.entries && branches_ == tree_.branch_pages && leaves_ == tree_.leaf_pages &&
      overflow) {
    return;
  }
  fail(
      "{} is damaged: its meta page counts {} entries on {} + {} + {} pages, there are {} on "
      "{} + {} + {}",
      database_.path(), tree_.entries, tree_.branch_pages, tree_.leaf_pages, tree_.overflow_pages,
      entries_, branches_, leaves_, overflow_);
}

// A value of the free list is a count, then as many page numbers.
uint64_t claim_free_pages(const Database& database, PageMap& pages) {
  TreeWalk walk(database, database.meta().free_pages, pages, TreeWalk::Reads::kValues);
  uint64_t total = 0;
  std::vector<uint8_t> value;
  for (Record record{}; walk.next(&record);) {
    value.resize(record.length);
    database.read(record.offset, value);
    const uint64_t room = value.size() / sizeof(uint64_t);
    const uint64_t count = room == 0 ? 0 : load<uint64_t>(value.data());
    if (room == 0 || count > room - 1) {
      fail("{} is damaged: an entry of its free list is cut short", database.path());
    }
    for (uint64_t i = 1; i <= count; ++i) {
      const auto page = load<uint64_t>(value.data() + i * sizeof(uint64_t));
      if (page < 2 || page > database.meta().last_page) {
        fail("{} is damaged: its free list names page {}", database.path(), page);
      }
      // LMDB may not have written the last pages of a file if they were freed at once.
      if (page < database.file_pages()) pages.claim(page, 1);
    }
    total += count;
  }
  return total;
}

}  // namespace sluice::lmdb
