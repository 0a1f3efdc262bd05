#include <cctype>
#include <memory>
#include <numeric>
#include <random>

#include "lmdb/failure.h"
#include "lmdb/tree_walk.h"
#include "lmdb_tools/commands.h"
#include "lmdb_tools/copy.h"
#include "lmdb_tools/progress.h"

namespace sluice::lmdb {
namespace {

// The name in a key of the form 00000042_NAME; a key of another form is itself the name.
std::string_view name_of(std::string_view key) {
  size_t digits = 0;
  while (digits < key.size() && isdigit(static_cast<unsigned char>(key[digits])) != 0) ++digits;
  if (digits < 8 || digits == key.size() || key[digits] != '_') return key;
  return key.substr(digits + 1);
}

// Fisher and Yates. The shuffle and distributions of standard libraries differ; with this one a
// seed gives the same order everywhere.
void shuffle(std::vector<uint32_t>* order, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (uint64_t left = order->size(); left > 1; --left) {
    // Draws above the largest multiple of `left` would favour small numbers.
    const uint64_t limit = UINT64_MAX - UINT64_MAX % left;
    uint64_t draw = random();
    while (draw >= limit) draw = random();
    std::swap((*order)[left - 1], (*order)[draw % left]);
  }
}

class ShuffledSource : public RecordSource {
 public:
  ShuffledSource(const Database& database, uint64_t seed) : database_(database) {
    check_key_range(database.meta().records.entries);
    for_each_record(database, [this](const Record& record) {
      places_.push_back({record.key_offset, record.offset, static_cast<uint32_t>(record.length),
                         static_cast<uint16_t>(record.key.size())});
    });
    order_.resize(places_.size());
    std::iota(order_.begin(), order_.end(), 0U);
    shuffle(&order_, seed);
  }

  uint64_t count() const override { return places_.size(); }

  KeyValue read(uint64_t index) const override {
    const Place& place = places_[order_[index]];
    std::string key(place.key_size, '\0');
    KeyValue record{{}, std::string(place.length, '\0')};
    database_.read(place.key, {reinterpret_cast<uint8_t*>(key.data()), key.size()});
    database_.read(place.value, {reinterpret_cast<uint8_t*>(record.value.data()), place.length});
    record.key = record_key(index, name_of(key));
    return record;
  }

 private:
  struct Place {
    uint64_t key, value;  // offsets in the file
    uint32_t length;      // of the value, bytes
    uint16_t key_size;    // bytes
  };

  const Database& database_;
  std::vector<Place> places_;    // in key order
  std::vector<uint32_t> order_;  // old index of each new record
};

}  // namespace

void reorder(const ReorderOptions& options) {
  const Database database(options.in);
  const ShuffledSource records(database, options.seed);
  if (records.count() == 0) fail("{} has no records", database.path());
  const Meta& meta = database.meta();
  DatabaseWriter writer(
      options.out, fmt::format("sluice-lmdb reorder\n{} transaction {} entries {} pages {}\n"
                               "seed {}\n",
                               options.in, meta.transaction, meta.records.entries, meta.last_page,
                               options.seed));
  copy_records(records, {0, 0, 1024}, "reorder", &writer);
  database.check_unchanged();
  writer.publish();
  fmt::print("{}: {} records, {} of values\n", options.out, writer.records(),
             human_bytes(writer.bytes()));
  check_output();
}

}  // namespace sluice::lmdb
