// The chunks of HDF5 files that h5py wrote, as h5py itself finds them; and files that are damaged.
#include "optimizer/io/hdf5_chunks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <sstream>

#include "tests/process/optimizer_client.h"

namespace sluice::optimizer {
namespace {

using policy::RowChunks;

constexpr uint64_t kRows = 700;
// Makes the files in a folder, and prints of each dataset whose chunks hold whole rows: the file,
// its rows to a chunk, and the chunks' offsets and lengths, row by row.
constexpr const char* kMake = R"(
import sys
import h5py, numpy
draw = numpy.random.default_rng(4)
ROWS = 700

def show(name, data):
    found = {}
    for number in range(data.id.get_num_chunks()):
        chunk = data.id.get_chunk_info(number)
        found[chunk.chunk_offset[0]] = (chunk.byte_offset, chunk.size)
    print(name, data.chunks[0], *(f"{found[row][0]} {found[row][1]}" for row in sorted(found)))

def make(name, write, **options):
    with h5py.File(f"{sys.argv[1]}/{name}", "w", **options) as file:
        for data in write(file):
            file.flush()
            show(name, data)

def images(place, name="images", rows=ROWS, each=1, **options):
    data = place.create_dataset(name, (rows, 40, 30), numpy.uint8, chunks=(each, 40, 30), **options)
    for row in range(rows):
        data[row] = draw.integers(0, 4, (40, 30), numpy.uint8)
    return data

make("plain", lambda file: [images(file)])
make("compressed", lambda file: [images(file, compression="gzip")])
make("several_rows", lambda file: [images(file, each=16)])
make("nested", lambda file: [images(file.create_group("a/b/c")), images(file["a"], "others", each=3)])
make("grows", lambda file: [images(file, maxshape=(None, 40, 30))])
make("userblock", lambda file: [images(file)][:0], userblock_size=1024)  # its content begins later

def many(file):
    for number in range(200):
        file.create_dataset(f"of-another-length-{number}", (3,), data=[1, 2, 3])
        file.create_group(f"group-{number}").attrs["text"] = "x" * number
    return [images(file, "zz")]
make("many", many)

def ordered(file):
    return [images(file.create_group("links", track_order=True))]
make("ordered", ordered)

def not_rows(file):
    file.create_dataset("tiles", (ROWS, 40), chunks=(10, 20), data=numpy.zeros((ROWS, 40)))
    file.create_dataset("contiguous", (ROWS, 40), data=numpy.zeros((ROWS, 40)))
    file["again"] = file["/"]
    return []
make("none", not_rows)
print("end")
)";

struct Made {
  uint64_t rows_each = 1;
  std::vector<RowChunks::Chunk> chunks;
};

std::vector<uint8_t> content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<RowChunks> find(const std::vector<uint8_t>& file, uint64_t* reads = nullptr,
                            const Hdf5Limits& limits = {}) {
  const Hdf5Read read = [&](uint64_t offset, void* out, uint64_t size) {
    if (reads != nullptr) ++*reads;
    if (offset > file.size() || size > file.size() - offset) return false;
    memcpy(out, file.data() + offset, size);
    return true;
  };
  return find_hdf5_chunks(
      read, [](uint64_t, uint64_t) {}, file.size(), kRows, limits);
}

class Hdf5ChunksTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new test::TempFolder;
    const std::string script = folder_->path() + "/make.py";
    std::ofstream(script) << kMake;
    const std::string command = "/usr/bin/python3 " + script + " " + folder_->path();
    FILE* output = popen(command.c_str(), "r");
    std::string text;
    char part[4096];
    for (size_t got = 1; got != 0;) {
      got = fread(part, 1, sizeof part, output);
      text.append(part, got);
    }
    there_ = pclose(output) == 0;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string name;
      Made made;
      words >> name >> made.rows_each;
      for (RowChunks::Chunk chunk; words >> chunk.offset >> chunk.length;) {
        made.chunks.push_back(chunk);
      }
      if (!made.chunks.empty()) made_.emplace(name, made);
    }
  }
  static void TearDownTestSuite() { delete folder_; }
  void SetUp() override {
    if (!there_) GTEST_SKIP() << "no h5py here";
  }
  static std::string path(const std::string& name) { return folder_->path() + "/" + name; }

  static test::TempFolder* folder_;
  static std::multimap<std::string, Made> made_;
  static bool there_;
};

test::TempFolder* Hdf5ChunksTest::folder_ = nullptr;
std::multimap<std::string, Made> Hdf5ChunksTest::made_;
bool Hdf5ChunksTest::there_ = false;

TEST_F(Hdf5ChunksTest, AreWhereH5pyFindsThem) {
  EXPECT_EQ(made_.size(), 8);
  for (auto at = made_.begin(); at != made_.end(); at = made_.upper_bound(at->first)) {
    const std::string& name = at->first;
    std::vector<RowChunks> found = find(content_of(path(name)));
    EXPECT_EQ(found.size(), made_.count(name)) << name;
    for (auto [one, end] = made_.equal_range(name); one != end; ++one) {
      const Made& made = one->second;
      const bool right = std::any_of(found.begin(), found.end(), [&](const RowChunks& chunks) {
        return chunks.rows_each == made.rows_each &&
               std::equal(chunks.chunks.begin(), chunks.chunks.end(), made.chunks.begin(),
                          made.chunks.end(), [](const auto& a, const auto& b) {
                            return a.offset == b.offset && a.length == b.length;
                          });
      });
      EXPECT_TRUE(right) << name << ", " << made.rows_each << " rows to a chunk";
    }
  }
  EXPECT_TRUE(find(content_of(path("none"))).empty());
  EXPECT_TRUE(find(content_of(path("userblock"))).empty());
}

TEST_F(Hdf5ChunksTest, DamagedFilesGiveNoPlaceBeyondTheirEnd) {
  std::mt19937_64 random(11);
  for (const char* name : {"plain", "nested", "many", "ordered", "grows"}) {
    const std::vector<uint8_t> good = content_of(path(name));
    for (unsigned round = 0; round < 300; ++round) {
      std::vector<uint8_t> bad = good;
      if (round % 4 == 0) bad.resize(random() % bad.size());
      for (unsigned i = 0; i < 1 + random() % 40 && !bad.empty(); ++i) {
        // Headers and the first nodes lie at the beginning.
        const size_t most = random() % 2 != 0 ? std::min<size_t>(bad.size(), 6000) : bad.size();
        bad[random() % most] = random() % 3 == 0 ? 0xff : static_cast<uint8_t>(random());
      }
      uint64_t reads = 0;
      for (const RowChunks& dataset : find(bad, &reads, {.nodes = 20'000, .objects = 500})) {
        for (const RowChunks::Chunk& chunk : dataset.chunks) {
          EXPECT_TRUE(chunk.length == 0 ||
                      (chunk.offset <= bad.size() && chunk.length <= bad.size() - chunk.offset));
        }
      }
      EXPECT_LE(reads, 20'000);
    }
  }
}

// A file may claim any number of datasets with as many rows as there are samples.
TEST_F(Hdf5ChunksTest, DatasetsAreBounded) {
  EXPECT_EQ(find(content_of(path("nested"))).size(), 2);
  EXPECT_EQ(find(content_of(path("nested")), nullptr, {.datasets = 1}).size(), 1);
}

TEST_F(Hdf5ChunksTest, ReadsAreBounded) {
  uint64_t reads = 0;
  find(content_of(path("many")), &reads, {.nodes = 10, .objects = 500});
  EXPECT_LE(reads, 10);
}

}  // namespace
}  // namespace sluice::optimizer
