// LMDB's layout of data.mdb (data version 1, 64-bit, little-endian), as far as Sluice's reader
// needs it.
//
// A file consists of pages of one size. Pages 0 and 1 are meta pages; the one with the larger
// transaction number is valid. Each of the two trees (free pages, records) has branch and leaf
// pages; a value too large for a leaf lies on overflow pages: one header, then the bytes without
// interruption.
#pragma once

#include <bit>
#include <cstdint>

namespace sluice::lmdb {

static_assert(std::endian::native == std::endian::little && sizeof(void*) == 8,
              "data.mdb is laid out as its writer's memory");

inline constexpr uint32_t kMagic = 0xBEEFC0DE;
inline constexpr uint32_t kDataVersion = 1;
inline constexpr uint64_t kNoPage = UINT64_MAX;  // root of an empty tree
inline constexpr unsigned kMaxDepth = 32;        // levels of a tree
inline constexpr size_t kMaxKey = 511;           // bytes

enum PageFlag : uint16_t {
  kBranchPage = 0x01,
  kLeafPage = 0x02,
  kOverflowPage = 0x04,
  kMetaPage = 0x08,
  kFixedLeafPage = 0x20,
  kSubPage = 0x40,
};
inline constexpr uint16_t kPageKinds =
    kBranchPage | kLeafPage | kOverflowPage | kMetaPage | kFixedLeafPage | kSubPage;

enum TreeFlag : uint16_t { kReverseKeys = 0x02, kDuplicates = 0x04, kIntegerKeys = 0x08 };

enum NodeFlag : uint16_t { kBigNode = 0x01, kTreeNode = 0x02, kDuplicatesNode = 0x04 };

struct PageHeader {
  uint64_t number;
  uint16_t unused;
  uint16_t flags;
  uint16_t lower;  // end of the table of node offsets; on overflow pages lower and upper
  uint16_t upper;  // are one 32-bit count of pages
};
static_assert(sizeof(PageHeader) == 16);

struct NodeHeader {
  uint16_t low, high;  // leaf: bytes of the value; branch: the child's page, with `flags` on top
  uint16_t flags;
  uint16_t key_size;
};
static_assert(sizeof(NodeHeader) == 8);

struct Tree {
  uint32_t page_size;  // of the file; only in the tree of free pages
  uint16_t flags;
  uint16_t depth;
  uint64_t branch_pages, leaf_pages, overflow_pages;
  uint64_t entries;
  uint64_t root;
};
static_assert(sizeof(Tree) == 48);

struct Meta {
  uint32_t magic;
  uint32_t version;
  uint64_t address;
  uint64_t map_size;  // bytes
  Tree free_pages;
  Tree records;
  uint64_t last_page;
  uint64_t transaction;
};
static_assert(sizeof(Meta) == 136);

}  // namespace sluice::lmdb
