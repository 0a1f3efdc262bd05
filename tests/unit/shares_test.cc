// What the headers of files of weights say, and which part of each tensor a reader reads.
#include "policy/weights/shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>

#include "policy/weights/tensor_list.h"
#include "tests/unit/scheduler_world.h"

namespace sluice::policy {
namespace {

using test::kKiB;
using test::kMiB;

constexpr uint64_t kWindow = Shares::kBlur;

std::string header_of(const std::string& entries) {
  return "{\"__metadata__\":{\"format\":\"pt\"}" + entries + "}";
}

std::string entry(const std::string& name, const std::string& shape, const std::string& offsets) {
  return ",\"" + name + "\":{\"dtype\":\"BF16\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

TEST(TensorList, ListsTensorsInTheFilesOrder) {
  const std::string header = header_of(
      entry("b.1.weight", "[4,4]", "[100,200]") + entry("a.2.weight", "[7]", "[200,300]") +
      entry("b.0.weight", "[4,4]", "[0,100]") + entry("nothing", "[0]", "[100,100]"));
  const TensorList list = parse_safetensors(header, 8 + header.size() + 300);
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[0].bytes, (Range{8 + header.size(), 108 + header.size()}));
  EXPECT_EQ(list[0].kind, list[1].kind);
  EXPECT_NE(list[0].kind, list[2].kind);
  EXPECT_TRUE(list[0].rows);
  EXPECT_FALSE(list[2].rows);
}

TEST(TensorList, ADamagedHeaderListsNothing) {
  const std::string good = entry("a", "[4,4]", "[0,100]");
  for (const std::string& bad :
       {std::string(), std::string("["), std::string("null"), std::string(5000, '['),
        header_of(entry("a", "[4,4]", "[0,101]")), header_of(entry("a", "[4,4]", "[50,40]")),
        header_of(entry("a", "[4,4]", "[-1,40]")), header_of(entry("a", "[4,4]", "[0,1e3]")),
        header_of(entry("a", "[4,4]", "[0]")), header_of(entry("a", "[4,4]", "\"x\"")),
        header_of(entry("a", "[4,4]", "[0,18446744073709551615]")), header_of(",\"a\":7"),
        header_of(good + entry("b", "[4,4]", "[50,60]")), header_of(good).substr(1),
        header_of(good) + "x"}) {
    EXPECT_TRUE(parse_safetensors(bad, 8 + bad.size() + 100).empty()) << bad.substr(0, 100);
  }
  const std::string whole = header_of(good);
  EXPECT_EQ(parse_safetensors(whole, 8 + whole.size() + 100).size(), 1U);
  EXPECT_TRUE(parse_safetensors(whole, whole.size()).empty());
}

TEST(TensorList, AHeaderThatCannotBeIsNotRead) {
  const auto begin = [](uint64_t length) {
    return std::string(reinterpret_cast<const char*>(&length), sizeof length);
  };
  EXPECT_EQ(safetensors_header(begin(1000), 2000), 1000U);
  EXPECT_EQ(safetensors_header(begin(1000), 1007), 0U);
  EXPECT_EQ(safetensors_header(begin(kMostHeader + 1), UINT64_MAX), 0U);
  EXPECT_EQ(safetensors_header(begin(UINT64_MAX), UINT64_MAX), 0U);
  EXPECT_EQ(safetensors_header("short", 2000), 0U);
}

// A model: an embedding, and layers of four matrices and a vector.
struct Model {
  explicit Model(size_t layers) {
    uint64_t at = 21 * kKiB + 500;
    const auto add = [&](uint32_t kind, uint64_t bytes, bool rows) {
      tensors.push_back({{at, at + bytes}, kind, rows});
      at += bytes;
    };
    add(0, 64 * kMiB, true);
    for (size_t layer = 0; layer < layers; ++layer) {
      add(1, 4 * kMiB, true);
      add(2, 4 * kMiB, true);
      add(3, 12 * kMiB, true);
      add(4, 6 * kKiB, false);
      add(5, 12 * kMiB, true);
    }
    size = at;
  }
  Range share(size_t tensor, uint64_t rank, uint64_t ranks) const {
    const Tensor& one = tensors[tensor];
    if (!one.rows) return one.bytes;
    const uint64_t part = one.bytes.length() / ranks;
    return {one.bytes.begin + rank * part, one.bytes.begin + (rank + 1) * part};
  }
  TensorList tensors;
  uint64_t size = 0;
};

class SharesTest : public testing::Test {
 protected:
  // As a page table shows it: in steps, blurred by what a fault maps, and with the first page of
  // the tensor touched, too.
  void read(size_t tensor, Range run) {
    see({model_.tensors[tensor].bytes.begin, model_.tensors[tensor].bytes.begin + 1});
    for (uint64_t at = run.begin; at < run.end; at += 256 * kKiB) {
      see({at, std::min(at + 256 * kKiB, run.end)});
    }
  }
  void see(Range range) {
    time_ += 2'000'000;
    shares_.on_read(
        model_.tensors,
        {range.begin / kWindow * kWindow, (range.end + kWindow - 1) / kWindow * kWindow}, time_);
  }
  // Bytes of the share that are not expected; beyond it, bytes that are.
  std::pair<uint64_t, uint64_t> wrong(uint64_t rank, uint64_t ranks, size_t from = 12) const {
    IntervalSet expected, right;
    for (const Range& range : shares_.expected(model_.tensors, 0, UINT64_MAX)) expected.add(range);
    uint64_t missing = 0;
    for (size_t i = shares_.unordered() ? 0 : from; i < model_.tensors.size(); ++i) {
      const Range share = model_.share(i, rank, ranks);
      missing += share.length() - expected.covered(share);
      right.add(share);
    }
    uint64_t beyond = 0;
    for (const Range& range : expected.pieces_in({model_.tensors[from].bytes.begin, UINT64_MAX})) {
      beyond += range.length() - right.covered(range);
    }
    return {missing, beyond};
  }

  Model model_{20};
  Shares shares_;
  uint64_t time_ = 1;
};

TEST_F(SharesTest, ARanksRowsOfAllTensorsAreExpectedAfterTwo) {
  for (const uint64_t rank : {0, 1, 3}) {
    shares_ = Shares();
    for (size_t tensor = 0; tensor < 12; ++tensor) {
      read(tensor, model_.share(tensor, rank, 4));
      EXPECT_TRUE(tensor != 4 || shares_.partial()) << rank;
    }
    const auto [missing, beyond] = wrong(rank, 4);
    EXPECT_EQ(missing, 0U) << rank;
    EXPECT_LE(beyond, 200 * kKiB) << rank;
  }
}

TEST_F(SharesTest, AnyOrderIsLearnedFrom) {
  std::vector<size_t> order(model_.tensors.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(5));
  for (size_t i = 0; i < 30; ++i) read(order[i], model_.share(order[i], 2, 4));
  EXPECT_TRUE(shares_.unordered());
  EXPECT_EQ(wrong(2, 4).first, 0U);
}

TEST_F(SharesTest, KindsMayBeSharedDifferently) {
  for (size_t tensor = 0; tensor < 22; ++tensor) {
    const bool whole = model_.tensors[tensor].kind == 3;
    read(tensor, model_.share(tensor, whole ? 0 : 1, whole ? 1 : 2));
  }
  EXPECT_TRUE(shares_.partial());
  IntervalSet expected;
  for (const Range& range : shares_.expected(model_.tensors, 0, UINT64_MAX)) expected.add(range);
  EXPECT_TRUE(expected.contains(model_.tensors[28].bytes));                      // kind 3
  EXPECT_LE(expected.covered(model_.tensors[27].bytes), 2 * kMiB + 200 * kKiB);  // kind 2
}

TEST_F(SharesTest, WholeTensorsAreNoShares) {
  for (size_t tensor = 0; tensor < 12; ++tensor) read(tensor, model_.tensors[tensor].bytes);
  EXPECT_TRUE(shares_.known());
  EXPECT_FALSE(shares_.partial());
}

// Each of eight threads reads a tensor of its own, slowly: none of them was left.
TEST_F(SharesTest, TensorsThatThreadsReadInTurnsAreNotLeft) {
  for (uint64_t at = 0; at < 12 * kMiB; at += 128 * kKiB) {
    for (size_t tensor = 1; tensor < 9; ++tensor) {
      const Range bytes = model_.tensors[tensor].bytes;
      if (at >= bytes.length()) continue;
      time_ += 8'000'000;
      see({bytes.begin + at, std::min(bytes.begin + at + 128 * kKiB, bytes.end)});
    }
  }
  EXPECT_FALSE(shares_.partial());
  EXPECT_TRUE(shares_.known());
}

TEST_F(SharesTest, AnExceptionChangesNothing) {
  for (size_t tensor = 0; tensor < 12; ++tensor) read(tensor, model_.share(tensor, 1, 4));
  read(12, model_.tensors[12].bytes);
  read(13, model_.share(13, 1, 4));
  read(14, model_.share(14, 1, 4));
  read(15, model_.share(15, 1, 4));
  EXPECT_EQ(wrong(1, 4, 16).first, 0U);
  EXPECT_LE(wrong(1, 4, 16).second, 200 * kKiB);
}

TEST(LikelyEnd, IsWhereTheNextEqualPartBegins) {
  const Model model(1);
  const Range bytes = model.tensors[0].bytes;
  const auto blurred = [](uint64_t at) { return at / kWindow * kWindow; };
  const uint64_t quarter = bytes.length() / 4;
  EXPECT_EQ(likely_end(model.tensors, blurred(bytes.begin + quarter)), bytes.begin + 2 * quarter);
  EXPECT_EQ(likely_end(model.tensors, blurred(bytes.begin + 3 * quarter)), bytes.end);
  EXPECT_FALSE(likely_end(model.tensors, blurred(bytes.begin)));
  EXPECT_FALSE(likely_end({}, 5 * kMiB));
}

// Reads its share of each tensor. Returns what the storage was asked for, in bytes.
uint64_t read_shares(test::World& world, const Model& model, const std::vector<size_t>& order,
                     const std::vector<uint64_t>& ranks, uint64_t of = 4) {
  uint64_t asked = 0, time = world.now();
  world.on_read = [&](uint64_t, const PlannedRead& planned) { asked += planned.range.length(); };
  world.scheduler.streams().on_tensors(FileId{1}, model.tensors);
  for (const size_t tensor : order) {
    const uint64_t length = model.share(tensor, 0, of).length();
    for (uint64_t at = 0; at < length; at += 256 * kKiB) {
      for (const uint64_t rank : ranks) {
        const Range share = model.share(tensor, rank, of);
        const Range piece{
            (share.begin + at) / 4096 * 4096,
            (std::min(share.begin + at + 256 * kKiB, share.end) + 4095) / 4096 * 4096};
        time = test::read_mapped(world, piece, rank + 1, time, &asked);
      }
    }
  }
  return asked;
}

class SharedWeights : public testing::Test {
 protected:
  void SetUp() override {
    order_.resize(model_.tensors.size());
    std::iota(order_.begin(), order_.end(), 0);
  }
  void shuffle() { std::shuffle(order_.begin(), order_.end(), std::mt19937_64(9)); }
  double seconds() const { return static_cast<double>(world_.now()) / 1e9; }

  Model model_{30};
  test::World world_{{0.010, 200e6}, model_.size};
  std::vector<size_t> order_;
};

TEST_F(SharedWeights, OneRankReadsItsRowsAtTheLinksRate) {
  EXPECT_LE(read_shares(world_, model_, order_, {1}), model_.size / 4 * 11 / 10);
  EXPECT_LE(seconds(), static_cast<double>(model_.size) / 4 / 200e6 * 1.15);
}

TEST_F(SharedWeights, InAnyOrder) {
  shuffle();
  EXPECT_LE(read_shares(world_, model_, order_, {3}), model_.size / 4 * 23 / 20);
  EXPECT_LE(seconds(), static_cast<double>(model_.size) / 4 / 200e6 * 1.5);
}

TEST_F(SharedWeights, AllRanksReadAllOnce) {
  EXPECT_LE(read_shares(world_, model_, order_, {0, 1, 2, 3}), model_.size * 21 / 20);
  EXPECT_LE(seconds(), static_cast<double>(model_.size) / 200e6 * 1.1);
}

TEST_F(SharedWeights, ASecondPassIsReadAheadOfAsTheFirst) {
  world_.scheduler.accounts().set_budget(2 * model_.size);
  read_shares(world_, model_, order_, {0});
  world_.cache[FileId{1}].clear();  // evicted
  const double first = seconds();
  EXPECT_GE(read_shares(world_, model_, order_, {0}), model_.size / 4);
  EXPECT_LE(seconds() - first, static_cast<double>(model_.size) / 4 / 200e6 * 1.25);
}

TEST_F(SharedWeights, AFewTensorsReadLittleMore) {
  order_.resize(4);
  const uint64_t asked = read_shares(world_, model_, order_, {1});
  EXPECT_LE(asked, 3 * (64 + 4 + 4 + 12) / 4 * kMiB);
}

// As of a file that is opened for its header and a tensor. The next tensor is read ahead of once it
// was begun.
TEST_F(SharedWeights, BeyondTheOnlyTensorThatWasBegunLittleIsRead) {
  for (const size_t tensor : {3, 0}) {
    Model model(30);
    test::World world({0.010, 200e6}, model.size);
    const uint64_t asked = read_shares(world, model, {tensor}, {0}, 1);
    EXPECT_LE(asked, model.tensors[tensor].bytes.length() + 2 * kMiB) << "tensor " << tensor;
  }
  std::sort(order_.begin(), order_.end());
  read_shares(world_, model_, order_, {0}, 1);
  EXPECT_LE(seconds(), static_cast<double>(model_.size) / 200e6 * 1.05);
}

// transformers' from_pretrained touches every tensor once before it reads any.
TEST_F(SharedWeights, FirstPagesThatAreTouchedOneAfterTheOtherAreReadAtOnce) {
  shuffle();
  uint64_t planned = 0, asked = 0, time = world_.now();
  world_.on_read = [&](uint64_t, const PlannedRead& read) { planned += read.range.length(); };
  world_.scheduler.streams().on_tensors(FileId{1}, model_.tensors);
  for (const size_t tensor : order_) {
    const uint64_t begin = model_.tensors[tensor].bytes.begin / 4096 * 4096;
    time = test::read_mapped(world_, {begin, begin + 4096}, 1, time, &asked);
  }
  EXPECT_LE(asked, 8U * 4096) << "the rest was there before it was touched";
  EXPECT_LE(planned, order_.size() * 4096 + 8 * kMiB) << "each of the first may begin a stream";
  EXPECT_LE(seconds(), 0.010 * 16) << "of " << order_.size() << " round trips";
}

TEST_F(SharedWeights, NoFirstPageIsReadAheadForATensorThatIsReadAtOnce) {
  for (const size_t tensor : {5, 2}) {
    const Range bytes = model_.tensors[tensor].bytes;
    test::World world({0.010, 200e6}, model_.size);
    uint64_t asked = 0, time = world.now();
    world.on_read = [&](uint64_t, const PlannedRead& read) {
      if (read.range.begin > bytes.end + 2 * kMiB) asked += read.range.length();
    };
    world.scheduler.streams().on_tensors(FileId{1}, model_.tensors);
    for (uint64_t at = bytes.begin / 4096 * 4096; at < bytes.begin + 2 * kMiB; at += 64 * kKiB) {
      uint64_t own = 0;
      time = test::read_mapped(world, {at, at + 64 * kKiB}, 1, time, &own);
    }
    EXPECT_EQ(asked, 0U) << "tensor " << tensor;
  }
}

TEST_F(SharedWeights, WithLittleMemoryNoMoreThanThatIsHeld) {
  world_.scheduler.accounts().set_budget(64 * kMiB);
  shuffle();
  read_shares(world_, model_, order_, {1});
  EXPECT_LE(world_.most_outstanding, 64 * kMiB);
}

}  // namespace
}  // namespace sluice::policy
