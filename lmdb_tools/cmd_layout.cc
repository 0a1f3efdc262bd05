#include <cstdio>
#include <memory>

#include "lmdb/failure.h"
#include "lmdb/tree_walk.h"
#include "lmdb_tools/commands.h"
#include "lmdb_tools/progress.h"

namespace sluice::lmdb {
namespace {

// Lustre and FEFS take stripe sizes in multiples of this.
constexpr uint64_t kStripeUnit = 64U << 10;  // bytes

// How a reader in key order moves through the file.
class Sequence {
 public:
  explicit Sequence(uint64_t page_size) : page_size_(page_size) {}

  void add(const Record& record) {
    const uint64_t first = record.offset / page_size_;
    const uint64_t last =
        record.length == 0 ? first : (record.offset + record.length - 1) / page_size_;
    if (count_ > 0) {
      // Between two neighbours lies at most one page of the tree. On a leaf page the values are
      // in descending order, which makes no difference to a reader of whole pages.
      if (first >= last_ && first <= last_ + 2) {
        ++following_;
      } else {
        ++(first > last_ ? forward_ : backward_);
      }
    }
    first_ = count_ == 0 ? first : std::min(first_, first);
    end_ = std::max(end_, last + 1);
    last_ = last;
    ++count_;
    bytes_ += record.length;
  }

  uint64_t count() const { return count_; }

  // Bytes of the file per record, including the rest of its last page and the tree.
  double span() const {
    return count_ == 0
               ? 0
               : static_cast<double>((end_ - first_) * page_size_) / static_cast<double>(count_);
  }

  void print() const {
    const uint64_t pairs = count_ > 0 ? count_ - 1 : 0;
    fmt::print("records           {}\n", count_);
    fmt::print("bytes of values   {} ({})\n", bytes_, human_bytes(bytes_));
    fmt::print("extent            [{}, {}) of the file\n", first_ * page_size_, end_ * page_size_);
    fmt::print("bytes per record  {:.0f} of the file\n", span());
    fmt::print(
        "sequential        {:.2f} % of successive records follow each other ({} of {})\n",
        pairs == 0 ? 100.0 : 100.0 * static_cast<double>(following_) / static_cast<double>(pairs),
        following_, pairs);
    fmt::print("jumps             {} forward, {} backward\n", forward_, backward_);
  }

 private:
  const uint64_t page_size_;
  uint64_t count_ = 0, bytes_ = 0;
  uint64_t first_ = 0, end_ = 0, last_ = 0;  // pages
  uint64_t following_ = 0, forward_ = 0, backward_ = 0;
};

// The stripe size that the paper recommends: batch size times GPUs of a node.
void print_stripe(const LayoutOptions& options, const Sequence& sequence) {
  const auto batch = static_cast<uint64_t>(sequence.span() * static_cast<double>(options.batch));
  const uint64_t stripe = (batch * options.gpus + kStripeUnit - 1) / kStripeUnit * kStripeUnit;
  fmt::print(
      "stripe size       {} ({}): a batch of {} records is {}, times {} {} of a node, in\n"
      "                  steps of 64 KiB; for instance lfs setstripe -S {}k\n",
      stripe, human_bytes(stripe), options.batch, human_bytes(batch), options.gpus,
      options.gpus == 1 ? "GPU" : "GPUs", stripe / 1024);
}

// A key that a spreadsheet could misread is quoted, with its quotes doubled.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

}  // namespace

void layout(const LayoutOptions& options) {
  const Database database(options.path);
  Sequence sequence(database.page_size());
  if (options.csv) fmt::print("key,offset,length\n");
  for_each_record(database, [&](const Record& record) {
    sequence.add(record);
    if (options.csv) {
      fmt::print("{},{},{}\n", csv_field(printable(record.key)), record.offset, record.length);
    }
  });
  database.check_unchanged();
  if (!options.csv) sequence.print();
  if (options.batch != 0) print_stripe(options, sequence);
  check_output();
}

}  // namespace sluice::lmdb
