// One pack: what was written comes back, and nothing else does.
#include "optimizer/packs/pack_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <functional>

#include "tests/unit/pack_data.h"

namespace sluice::optimizer {
namespace {

using namespace test;

struct Sample {
  std::string path;
  uint64_t offset, length, size;
};

const std::vector<Sample>& some() {
  static const std::vector<Sample> samples = {
      {"/data/one", 0, 300, 300},
      {"/data/two\n\xff", 4096, 77, 1 << 20},
      {"/data/two\n\xff", 0, 5, 1 << 20},
      {"/data/empty", 0, 0, 0},
      {"/data/end", 9, 1, 10},
      {"/" + std::string(1022, 'x'), 1ULL << 40, 64, 1ULL << 41},
  };
  return samples;
}

bool add(PackBuilder* builder, uint64_t number, const Sample& sample) {
  const std::vector<char> bytes = contents(number, sample.length);
  return builder->add({sample.path, sample.offset, sample.length}, version(sample.size, number),
                      bytes, Checksum::of(bytes.data(), bytes.size()));
}

PackBuilder build(const std::vector<Sample>& samples) {
  PackBuilder builder;
  for (uint64_t number = 0; number < samples.size(); ++number) {
    EXPECT_TRUE(add(&builder, number, samples[number]));
  }
  return builder;
}

class PackFiles : public ::testing::Test {
 protected:
  void write(const std::vector<Sample>& samples) {
    ASSERT_EQ(build(samples).write(folder_.fd.get(), kName), 0);
  }
  OpenedPack open() const { return PackFile::open(folder_.fd.get(), kName); }
  fs::path path() const { return folder_.path / kName; }

  // What is wrong with these bytes as a pack: "" if nothing is.
  static std::string problem_of(const std::vector<char>& bytes) {
    const OpenedPack opened = PackFile::adopt(memory(bytes));
    if (opened.file == nullptr) {
      EXPECT_EQ(opened.error, EBADMSG) << opened.reason;
      EXPECT_FALSE(opened.reason.empty());
      return opened.reason;
    }
    for (const PackEntry& entry : opened.file->entries()) {
      const int error = opened.file->check(entry);
      std::vector<char> sample;
      EXPECT_EQ(opened.file->read(entry, &sample), error);
      if (error == 0) continue;
      EXPECT_EQ(error, EBADMSG);
      return "a sample is damaged";
    }
    return "";
  }

  static constexpr const char* kName = "pack";
  TemporaryFolder folder_;
};

void expect_same(const PackFile& pack, const std::vector<Sample>& samples) {
  ASSERT_EQ(pack.entries().size(), samples.size());
  for (uint64_t number = 0; number < samples.size(); ++number) {
    const Sample& sample = samples[number];
    const PackEntry& entry = pack.entries()[number];
    EXPECT_EQ(pack.key(entry), (PackKey{sample.path, sample.offset, sample.length}));
    EXPECT_EQ(entry.version, version(sample.size, number));
    const UniqueFd to = memory({});
    ASSERT_EQ(pack.copy(entry, to.get()), 0);
    EXPECT_EQ(all_of(to.get()), contents(number, sample.length));
    std::vector<char> bytes;
    ASSERT_EQ(pack.read(entry, &bytes), 0);
    EXPECT_EQ(bytes, contents(number, sample.length));
  }
}

TEST_F(PackFiles, ComeBackAsTheyWere) {
  write(some());
  const OpenedPack opened = open();
  ASSERT_NE(opened.file, nullptr) << opened.reason;
  expect_same(*opened.file, some());
  EXPECT_EQ(opened.file->bytes(), fs::file_size(path()));
  EXPECT_EQ(build(some()).bytes(), fs::file_size(path()));
  EXPECT_EQ(fs::status(path()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  // Each path once.
  const std::vector<char> bytes = read_file(path());
  const std::string text(bytes.data(), bytes.size());
  EXPECT_EQ(text.find("/data/two"), text.rfind("/data/two"));
}

TEST_F(PackFiles, OfLargeAndManySamples) {
  std::vector<Sample> samples = {{"/large", 0, 3 << 20, 3 << 20}};
  for (int i = 0; i < 3000; ++i) samples.push_back({"/many" + std::to_string(i), 0, 700, 700});
  samples.push_back({"/large too", 0, (1 << 20) + 1, (1 << 20) + 1});
  write(samples);
  const OpenedPack opened = open();
  ASSERT_NE(opened.file, nullptr) << opened.reason;
  expect_same(*opened.file, samples);
}

TEST_F(PackFiles, EveryFlippedBitIsFound) {
  write({some().begin(), some().end() - 1});
  const std::vector<char> good = read_file(path());
  ASSERT_EQ(problem_of(good), "");
  for (size_t at = 0; at < good.size(); ++at) {
    for (const int bits : {1, 0x80, 0xff}) {
      std::vector<char> bad = good;
      bad[at] = static_cast<char>(bad[at] ^ bits);
      EXPECT_NE(problem_of(bad), "") << "byte " << at;
    }
  }
}

TEST_F(PackFiles, EveryTruncationIsFound) {
  write({some().begin(), some().end() - 1});
  const std::vector<char> good = read_file(path());
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_NE(problem_of({good.begin(), good.begin() + static_cast<ptrdiff_t>(size)}), "") << size;
  }
  std::vector<char> longer = good;
  longer.push_back(0);
  EXPECT_NE(problem_of(longer), "");
}

TEST_F(PackFiles, CutShortWhileOpen) {
  write(some());
  const OpenedPack opened = open();
  ASSERT_NE(opened.file, nullptr);
  ASSERT_EQ(truncate(path().c_str(), static_cast<off_t>(opened.file->head_bytes() + 10)), 0);
  const UniqueFd to = memory({});
  EXPECT_EQ(opened.file->copy(opened.file->entries()[0], to.get()), EBADMSG);
  std::vector<char> bytes;
  EXPECT_EQ(opened.file->read(opened.file->entries()[0], &bytes), EBADMSG);
}

TEST_F(PackFiles, HostileValuesAreRefused) {
  write(some());
  const std::vector<char> good = read_file(path());
  const auto with_header = [&](const std::function<void(PackHeader*)>& change) {
    std::vector<char> bad = good;
    PackHeader header;
    memcpy(&header, bad.data(), sizeof header);
    change(&header);
    memcpy(bad.data(), &header, sizeof header);
    // The checksum is right wherever it can be.
    if (header.index_bytes <= good.size() && header.names_bytes <= good.size()) sign(&bad);
    return problem_of(bad);
  };
  const auto with_entry = [&](size_t number, const std::function<void(PackEntry*)>& change) {
    std::vector<char> bad = good;
    PackEntry entry;
    char* const at = bad.data() + sizeof(PackHeader) + number * sizeof entry;
    memcpy(&entry, at, sizeof entry);
    change(&entry);
    memcpy(at, &entry, sizeof entry);
    sign(&bad);
    return problem_of(bad);
  };
  ASSERT_EQ(with_header([](PackHeader*) {}), "");
  ASSERT_EQ(with_entry(1, [](PackEntry*) {}), "");
  EXPECT_EQ(with_header([](PackHeader* h) { ++h->magic; }), "not a pack");
  EXPECT_EQ(with_header([](PackHeader* h) { ++h->version; }), "a pack of another version");
  for (const uint64_t value :
       {uint64_t{0}, uint64_t{1}, good.size() - 1, good.size() + 1, uint64_t{1} << 31,
        uint64_t{1} << 63, UINT64_MAX, UINT64_MAX - 47, UINT64_MAX - 79}) {
    EXPECT_NE(with_header([=](PackHeader* h) { h->bytes = value; }), "") << value;
    EXPECT_NE(with_header([=](PackHeader* h) { h->index_bytes = value; }), "") << value;
    EXPECT_NE(with_header([=](PackHeader* h) { h->names_bytes = value; }), "") << value;
    EXPECT_NE(with_entry(1, [=](PackEntry* e) { e->at = value; }), "") << value;
    EXPECT_NE(with_entry(5, [=](PackEntry* e) { e->length = value; }), "") << value;
  }
  for (const uint32_t value : {0U, 1U, 1U << 20, 1U << 31, UINT32_MAX}) {
    EXPECT_NE(with_header([=](PackHeader* h) { h->samples = value; }), "") << value;
    EXPECT_NE(with_header([=](PackHeader* h) { h->entry_size = value; }), "") << value;
    if (value == 1) continue;  // a path may be anything of the names that is one
    EXPECT_NE(with_entry(1, [=](PackEntry* e) { e->path_length = value; }), "") << value;
    if (value == 0) continue;
    EXPECT_NE(with_entry(1, [=](PackEntry* e) { e->path = value; }), "") << value;
  }
  EXPECT_NE(with_entry(1, [](PackEntry* e) { ++e->path; }), "");
  EXPECT_NE(with_entry(5, [](PackEntry* e) { ++e->path_length; }), "");
  EXPECT_NE(with_entry(5, [](PackEntry* e) { e->part = UINT64_MAX; }), "");
  EXPECT_NE(with_entry(5, [](PackEntry* e) { e->part = e->version.size; }), "");
  EXPECT_NE(with_entry(5, [](PackEntry* e) { e->version.size = e->part + e->length - 1; }), "");
  EXPECT_NE(with_entry(0, [](PackEntry* e) { e->version.modified_ns = 1'000'000'000; }), "");
  EXPECT_NE(with_entry(0, [](PackEntry* e) { e->version.changed_ns = UINT32_MAX; }), "");
  // Two samples in each other's place.
  EXPECT_NE(with_entry(0, [](PackEntry* e) { e->at += 300; }), "");
  // Bytes of no sample, at the end.
  std::vector<char> longer = good;
  longer.push_back('x');
  PackHeader header;
  memcpy(&header, longer.data(), sizeof header);
  ++header.bytes;
  memcpy(longer.data(), &header, sizeof header);
  sign(&longer);
  EXPECT_NE(problem_of(longer), "");
  std::vector<char> with_nul = good;
  with_nul[sizeof(PackHeader) + some().size() * sizeof(PackEntry) + 3] = 0;
  sign(&with_nul);
  EXPECT_NE(problem_of(with_nul), "");
}

TEST_F(PackFiles, AreRegularAndOurs) {
  write(some());
  fs::create_symlink(kName, folder_.path / "link");
  ASSERT_EQ(mkfifo((folder_.path / "fifo").c_str(), 0600), 0);
  fs::create_directory(folder_.path / "folder");
  for (const char* name : {"link", "fifo", "folder"}) {
    const OpenedPack opened = PackFile::open(folder_.fd.get(), name);
    EXPECT_EQ(opened.file, nullptr) << name;
    EXPECT_EQ(opened.error, EBADMSG) << name;
  }
  EXPECT_EQ(PackFile::open(folder_.fd.get(), "none").error, ENOENT);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(path().c_str(), 12345, 12345), 0);
    EXPECT_EQ(open().error, EBADMSG);
    EXPECT_EQ(open().reason, "another user's");
  }
}

TEST_F(PackFiles, AreThereWholeOrNotAtAll) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const PackBuilder builder = build(some());
  for (const rlim_t limit : {rlim_t{0}, rlim_t{100}, builder.bytes() - 1}) {
    const rlimit low{limit, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
    EXPECT_EQ(builder.write(folder_.fd.get(), kName), EFBIG);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_TRUE(fs::is_empty(folder_.path));
  }
  signal(SIGXFSZ, handler);
  EXPECT_EQ(builder.write(folder_.fd.get(), kName), 0);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path), fs::directory_iterator()), 1);
}

TEST_F(PackFiles, AWriteThatFailsIsNoDamage) {
  write(some());
  const OpenedPack opened = open();
  ASSERT_NE(opened.file, nullptr);
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(opened.file->copy(opened.file->entries()[0], full.get()), ENOSPC);
}

TEST(PackBuilder, TakesOnlyWhatMakesSense) {
  PackBuilder builder;
  const std::vector<Sample> bad = {
      {"relative", 0, 1, 1},
      {"", 0, 1, 1},
      {"/" + std::string(1023, 'x'), 0, 1, 1},
      {std::string("/a\0b", 4), 0, 1, 1},
      {"/short", 0, 2, 1},
      {"/beyond", 2, 0, 1},
      {"/over", UINT64_MAX, 2, 1},
  };
  for (const Sample& sample : bad) EXPECT_FALSE(add(&builder, 0, sample)) << sample.path;
  EXPECT_FALSE(builder.add({"/other length", 0, 5}, version(5), contents(0, 4), 0));
  PackVersion odd = version(4);
  odd.modified_ns = 1'000'000'000;
  EXPECT_FALSE(builder.add({"/odd time", 0, 4}, odd, contents(0, 4), 0));
  EXPECT_TRUE(builder.entries().empty());
}

}  // namespace
}  // namespace sluice::optimizer
