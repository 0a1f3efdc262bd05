#include "optimizer/io/hdf5_chunks.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <span>
#include <utility>

namespace sluice::optimizer {

using policy::RowChunks;
namespace {

constexpr unsigned char kSignature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
constexpr uint64_t kNone = UINT64_MAX;  // an undefined address
constexpr unsigned kMostRank = 32;
constexpr unsigned kMostLevel = 32;          // of a B-tree
constexpr uint64_t kMostHeader = 1 << 20;    // bytes of one block of an object header
constexpr uint64_t kMostNode = 1 << 20;      // bytes of a B-tree's node
constexpr uint64_t kNodeHeader = 24;         // bytes
constexpr uint64_t kMostChunk = UINT32_MAX;  // bytes

enum Message : uint16_t {
  kDataspace = 0x01,
  kLink = 0x06,
  kLayout = 0x08,
  kContinuation = 0x10,
  kSymbolTable = 0x11,
};

using Bytes = std::vector<uint8_t>;

// Takes little-endian numbers from the front; `good` ends with the first that is not there.
class Cursor {
 public:
  explicit Cursor(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  uint64_t number(size_t size) {
    if (!skip(size)) return 0;
    uint64_t out = 0;
    memcpy(&out, bytes_.data() + at_ - size, size);
    return out;
  }
  bool skip(uint64_t size) {
    good_ = good_ && size <= bytes_.size() - at_;
    if (good_) at_ += size;
    return good_;
  }
  std::span<const uint8_t> take(uint64_t size) {
    return skip(size) ? bytes_.subspan(at_ - size, size) : std::span<const uint8_t>();
  }
  uint64_t left() const { return bytes_.size() - at_; }
  bool good() const { return good_; }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
  bool good_ = true;
};

// What an object's header says of it.
struct Object {
  std::vector<uint64_t> dimensions;  // of a dataset's space
  bool chunked = false;
  std::vector<uint64_t> chunk;  // a chunk's dimensions, and the size of an element
  uint64_t index = kNone;       // the chunks' B-tree
  std::vector<uint64_t> links;  // headers of objects in a group
  uint64_t symbols = kNone;     // a group's B-tree
};

class File {
 public:
  File(const Hdf5Read& read, const Hdf5Ahead& ahead, uint64_t size, const Hdf5Limits& limits)
      : read_(read), ahead_(ahead), size_(size), limits_(limits) {}

  // The root group's header; kNone: no file that is known here.
  uint64_t root();
  std::optional<Object> object(uint64_t address);
  // Headers of the objects in a group's B-tree.
  void add_symbols(uint64_t tree, std::vector<uint64_t>* objects);
  // Calls visit(offsets of the chunk, address, bytes) for each chunk below the node.
  template <typename Visit>
  void visit_chunks(uint64_t tree, size_t rank, unsigned level, const Visit& visit);

 private:
  // `size` bytes at an address of the file; empty: there are fewer, or too much was read.
  Bytes at(uint64_t address, uint64_t size);
  bool header_1(uint64_t address, Object* object);
  bool header_2(uint64_t address, Object* object);
  void messages_1(std::span<const uint8_t> block, std::vector<std::pair<uint64_t, uint64_t>>* more,
                  Object* object);
  void messages_2(std::span<const uint8_t> block, bool ordered,
                  std::vector<std::pair<uint64_t, uint64_t>>* more, Object* object);
  static void dataspace(Cursor message, Object* object);
  static void layout(Cursor message, Object* object);
  static void link(Cursor message, Object* object);
  // A message of an object's header.
  static void take(unsigned type, std::span<const uint8_t> data,
                   std::vector<std::pair<uint64_t, uint64_t>>* more, Object* object);

  const Hdf5Read& read_;
  const Hdf5Ahead& ahead_;
  const uint64_t size_;
  const Hdf5Limits limits_;
  uint64_t base_ = 0, nodes_ = 0;
  std::set<uint64_t> seen_;  // nodes of trees
};

Bytes File::at(uint64_t address, uint64_t size) {
  if (size == 0 || ++nodes_ > limits_.nodes || address > size_ - std::min(size_, base_)) return {};
  const uint64_t offset = base_ + address;
  if (offset > size_ || size > size_ - offset) return {};
  Bytes out(size);
  if (!read_(offset, out.data(), size)) out.clear();
  return out;
}

uint64_t File::root() {
  const Bytes block = at(0, std::min<uint64_t>(size_, 96));
  Cursor cursor(block);
  const auto signature = cursor.take(sizeof kSignature);
  if (!cursor.good() || memcmp(signature.data(), kSignature, sizeof kSignature) != 0) return kNone;
  const uint64_t version = cursor.number(1);
  if (version <= 1) {
    cursor.skip(4);
    const uint64_t offsets = cursor.number(1), lengths = cursor.number(1);
    if (offsets != 8 || lengths != 8) return kNone;
    cursor.skip(1 + 2 + 2 + 4 + (version == 1 ? 4 : 0));
    base_ = cursor.number(8);
    cursor.skip(3 * 8 + 8);  // other addresses; the root entry's name
  } else if (version <= 3) {
    const uint64_t offsets = cursor.number(1), lengths = cursor.number(1);
    if (offsets != 8 || lengths != 8) return kNone;
    cursor.skip(1);
    base_ = cursor.number(8);
    cursor.skip(2 * 8);
  } else {
    return kNone;
  }
  const uint64_t root = cursor.number(8);
  return cursor.good() && base_ <= size_ ? root : kNone;
}

std::optional<Object> File::object(uint64_t address) {
  const Bytes start = at(address, 16);
  if (start.empty()) return std::nullopt;
  Object object;
  const bool newer = memcmp(start.data(), "OHDR", 4) == 0;
  if (!(newer ? header_2(address, &object) : header_1(address, &object))) return std::nullopt;
  return object;
}

bool File::header_1(uint64_t address, Object* object) {
  const Bytes start = at(address, 16);
  Cursor cursor(start);
  const uint64_t version = cursor.number(1);
  cursor.skip(1 + 2 + 4);
  const uint64_t size = cursor.number(4);
  if (!cursor.good() || version != 1 || size > kMostHeader) return false;
  std::vector<std::pair<uint64_t, uint64_t>> blocks{{address + 16, size}};
  for (size_t i = 0; i < blocks.size() && i < limits_.objects; ++i) {
    const auto [where, bytes] = blocks[i];
    if (bytes <= kMostHeader) messages_1(at(where, bytes), &blocks, object);
  }
  return true;
}

void File::messages_1(std::span<const uint8_t> block,
                      std::vector<std::pair<uint64_t, uint64_t>>* more, Object* object) {
  Cursor cursor(block);
  while (cursor.left() >= 8) {
    const auto type = static_cast<unsigned>(cursor.number(2));
    const uint64_t size = cursor.number(2);
    cursor.skip(4);
    const auto data = cursor.take(size);
    if (!cursor.good()) return;
    take(type, data, more, object);
  }
}

bool File::header_2(uint64_t address, Object* object) {
  const Bytes start = at(address, std::min<uint64_t>(48, size_ - std::min(size_, address)));
  Cursor cursor(start);
  cursor.skip(4);
  const uint64_t version = cursor.number(1), flags = cursor.number(1);
  cursor.skip((flags & 0x20) != 0 ? 16 : 0);
  cursor.skip((flags & 0x10) != 0 ? 4 : 0);
  const uint64_t size = cursor.number(size_t{1} << (flags & 3));
  if (!cursor.good() || version != 2 || size > kMostHeader) return false;
  const bool ordered = (flags & 4) != 0;
  std::vector<std::pair<uint64_t, uint64_t>> blocks;
  messages_2(at(address + (start.size() - cursor.left()), size), ordered, &blocks, object);
  for (size_t i = 0; i < blocks.size() && i < limits_.objects; ++i) {
    const auto [where, bytes] = blocks[i];
    if (bytes < 8 || bytes > kMostHeader) continue;
    const Bytes block = at(where, bytes);
    if (block.empty() || memcmp(block.data(), "OCHK", 4) != 0) continue;
    messages_2(std::span(block).subspan(4, bytes - 8), ordered, &blocks, object);
  }
  return true;
}

void File::messages_2(std::span<const uint8_t> block, bool ordered,
                      std::vector<std::pair<uint64_t, uint64_t>>* more, Object* object) {
  Cursor cursor(block);
  while (cursor.left() >= 4) {
    const auto type = static_cast<unsigned>(cursor.number(1));
    const uint64_t size = cursor.number(2);
    cursor.skip(ordered ? 3 : 1);
    const auto data = cursor.take(size);
    if (!cursor.good()) return;
    take(type, data, more, object);
  }
}

void File::take(unsigned type, std::span<const uint8_t> data,
                std::vector<std::pair<uint64_t, uint64_t>>* more, Object* object) {
  Cursor cursor(data);
  switch (type) {
    case kDataspace:
      dataspace(cursor, object);
      break;
    case kLayout:
      layout(cursor, object);
      break;
    case kLink:
      link(cursor, object);
      break;
    case kContinuation: {
      const uint64_t where = cursor.number(8), bytes = cursor.number(8);
      if (cursor.good()) more->emplace_back(where, bytes);
      break;
    }
    case kSymbolTable: {
      const uint64_t tree = cursor.number(8);
      if (cursor.good()) object->symbols = tree;
      break;
    }
    default:
      break;
  }
}

void File::dataspace(Cursor message, Object* object) {
  const uint64_t version = message.number(1), rank = message.number(1);
  if (version < 1 || version > 2 || rank > kMostRank) return;
  message.skip(version == 1 ? 6 : 2);
  std::vector<uint64_t> dimensions(rank);
  for (uint64_t& dimension : dimensions) dimension = message.number(8);
  if (message.good()) object->dimensions = std::move(dimensions);
}

void File::layout(Cursor message, Object* object) {
  constexpr uint64_t kChunked = 2;
  if (message.number(1) != 3 || message.number(1) != kChunked) return;
  const uint64_t rank = message.number(1);  // and one more, for the element
  const uint64_t tree = message.number(8);
  if (rank < 2 || rank > kMostRank + 1) return;
  std::vector<uint64_t> chunk(rank);
  for (uint64_t& dimension : chunk) dimension = message.number(4);
  if (!message.good() || std::count(chunk.begin(), chunk.end(), 0U) != 0) return;
  object->chunked = true;
  object->chunk = std::move(chunk);
  object->index = tree;
}

void File::link(Cursor message, Object* object) {
  constexpr uint64_t kHard = 0;
  const uint64_t version = message.number(1), flags = message.number(1);
  const uint64_t type = (flags & 8) != 0 ? message.number(1) : kHard;
  message.skip((flags & 4) != 0 ? 8 : 0);
  message.skip((flags & 0x10) != 0 ? 1 : 0);
  message.skip(message.number(size_t{1} << (flags & 3)));  // the name
  const uint64_t address = message.number(8);
  if (message.good() && version == 1 && type == kHard) object->links.push_back(address);
}

void File::add_symbols(uint64_t tree, std::vector<uint64_t>* objects) {
  if (tree == kNone || !seen_.insert(tree).second || objects->size() > limits_.objects) return;
  const Bytes start = at(tree, kNodeHeader);
  if (start.empty()) return;
  Cursor cursor(start);
  const auto signature = cursor.take(4);
  if (memcmp(signature.data(), "SNOD", 4) == 0) {
    cursor.skip(2);
    const uint64_t symbols = cursor.number(2);
    const Bytes node = at(tree + 8, symbols * 40);
    Cursor entries(node);
    for (uint64_t i = 0; i < symbols && entries.left() >= 40; ++i) {
      entries.skip(8);
      objects->push_back(entries.number(8));
      entries.skip(24);
    }
    return;
  }
  const uint64_t type = cursor.number(1), level = cursor.number(1), used = cursor.number(2);
  if (memcmp(signature.data(), "TREE", 4) != 0 || type != 0 || level > kMostLevel) return;
  const Bytes node = at(tree + kNodeHeader, used * 16);
  Cursor entries(node);
  for (uint64_t i = 0; i < used && entries.left() >= 16; ++i) {
    entries.skip(8);
    add_symbols(entries.number(8), objects);
  }
}

template <typename Visit>
void File::visit_chunks(uint64_t tree, size_t rank, unsigned level, const Visit& visit) {
  if (tree == kNone || level > kMostLevel || !seen_.insert(tree).second) return;
  const Bytes start = at(tree, kNodeHeader);
  Cursor cursor(start);
  const auto signature = cursor.take(4);
  const uint64_t type = cursor.number(1), own = cursor.number(1), used = cursor.number(2);
  if (!cursor.good() || memcmp(signature.data(), "TREE", 4) != 0 || type != 1) return;
  if (level != 0 && own + 1 != level) return;  // a child is one level below
  const uint64_t entry = 8 + 8 * (rank + 1) + 8;
  if (used * entry > kMostNode) return;
  const Bytes node = at(tree + kNodeHeader, used * entry);
  std::vector<uint64_t> children;
  std::vector<uint64_t> offsets(rank);
  Cursor entries(node);
  for (uint64_t i = 0; i < used && entries.left() >= entry; ++i) {
    const uint64_t bytes = entries.number(4);
    entries.skip(4);  // filters that were left out
    for (uint64_t& offset : offsets) offset = entries.number(8);
    entries.skip(8);  // of the element
    const uint64_t address = entries.number(8);
    if (own == 0) {
      if (address <= size_) visit(offsets, base_ + address, bytes);
    } else {
      children.push_back(address);
      ahead_(base_ + address, kNodeHeader + 64 * entry);
    }
  }
  for (const uint64_t child : children)
    visit_chunks(child, rank, static_cast<unsigned>(own), visit);
}

// Whether each chunk of the dataset holds whole rows.
bool has_rows(const Object& object, uint64_t rows) {
  const std::vector<uint64_t>& chunk = object.chunk;
  const size_t rank = object.dimensions.size();
  if (!object.chunked || rank == 0 || chunk.size() != rank + 1 || object.dimensions[0] != rows) {
    return false;
  }
  for (size_t i = 1; i < rank; ++i) {
    if (chunk[i] < object.dimensions[i]) return false;
  }
  return true;
}

}  // namespace

bool looks_like_hdf5(const void* beginning) {
  return memcmp(beginning, kSignature, sizeof kSignature) == 0;
}

std::vector<RowChunks> find_hdf5_chunks(const Hdf5Read& read, const Hdf5Ahead& ahead, uint64_t size,
                                        uint64_t rows, const Hdf5Limits& limits) {
  std::vector<RowChunks> out;
  File file(read, ahead, size, limits);
  std::vector<uint64_t> objects{file.root()};
  std::set<uint64_t> known;
  for (size_t i = 0; i < objects.size() && i < limits.objects && out.size() < limits.datasets;
       ++i) {
    if (objects[i] == kNone || !known.insert(objects[i]).second) continue;
    const std::optional<Object> object = file.object(objects[i]);
    if (!object) continue;
    objects.insert(objects.end(), object->links.begin(), object->links.end());
    file.add_symbols(object->symbols, &objects);
    if (!has_rows(*object, rows)) continue;
    RowChunks found;
    found.rows_each = object->chunk.front();
    found.chunks.resize((rows + found.rows_each - 1) / found.rows_each);
    file.visit_chunks(object->index, object->dimensions.size(), 0,
                      [&](const std::vector<uint64_t>& offsets, uint64_t address, uint64_t bytes) {
                        const uint64_t number = offsets[0] / found.rows_each;
                        if (number >= found.chunks.size() || bytes == 0 || bytes > kMostChunk ||
                            address > size || bytes > size - address) {
                          return;
                        }
                        found.chunks[number] = {address, static_cast<uint32_t>(bytes)};
                      });
    out.push_back(std::move(found));
  }
  return out;
}

}  // namespace sluice::optimizer
