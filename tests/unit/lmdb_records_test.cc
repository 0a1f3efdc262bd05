// What is listed of a data.mdb is what liblmdb wrote; what is not sound gives one line and no
// crash.
#include "optimizer/io/lmdb_records.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <lmdb.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "protocol/unique_fd.h"
#include "tests/unit/lmdb_files.h"

namespace sluice::optimizer {

using policy::RecordList;
namespace {

using test::contents;
using test::LmdbFile;
using test::Pairs;
using test::set_contents;
using test::value_for;

constexpr size_t kPage = 4096;  // of a file that liblmdb makes on a machine with such pages
const std::atomic<bool> kGoOn{false};

LmdbListing listed(const std::string& path, const LmdbLimits& limits = {}) {
  return list_lmdb_records(path, kGoOn, limits);
}

std::string refused(const std::string& path, const LmdbLimits& limits = {}) {
  const LmdbListing listing = listed(path, limits);
  EXPECT_FALSE(listing.records);
  EXPECT_EQ(listing.why.find('\n'), std::string::npos) << listing.why;
  EXPECT_EQ(listing.why.find(path), std::string::npos) << listing.why;
  return listing.why;
}

// Keys of several lengths in no order, values in leaf pages and on pages of their own.
Pairs mixed(size_t count) {
  Pairs records;
  for (size_t i = 0; i < count; ++i) {
    const std::string key = std::to_string(i * 7919 % count) + std::string(i % 5, 'x');
    records.emplace_back(key, value_for(key, i % 10 == 0 ? 3000 + i : i % 300));
  }
  return records;
}

void expect_holds(const std::string& path, const Pairs& expected) {
  const LmdbListing listing = listed(path);
  ASSERT_TRUE(listing.records) << listing.why;
  EXPECT_EQ(listing.why, "");
  const std::string bytes = contents(path);
  const std::map<std::string, std::string> sorted(expected.begin(), expected.end());
  const RecordList& records = *listing.records;
  ASSERT_EQ(records.size(), sorted.size());
  size_t at = 0;
  for (const auto& [key, value] : sorted) {
    ASSERT_EQ(records.key(at), key);
    ASSERT_EQ(records.length(at), value.size()) << key;
    ASSERT_GE(records.offset(at), records.values_begin());
    ASSERT_EQ(bytes.substr(records.offset(at), records.length(at)), value) << key;
    ++at;
  }
}

TEST(LmdbRecords, AreThoseThatWereWritten) {
  for (const size_t count : {1, 2, 10, 3000}) {
    SCOPED_TRACE(count);
    const Pairs records = mixed(count);
    expect_holds(LmdbFile(records).path(), records);
  }
}

TEST(LmdbRecords, NoneAtAll) {
  const LmdbFile file({});
  expect_holds(file.path(), {});
  file.write({{"a", "1"}});
  expect_holds(file.path(), {{"a", "1"}});
  file.write({{"a", ""}}, true);
  expect_holds(file.path(), {});
}

TEST(LmdbRecords, AfterManyTransactions) {
  Pairs records = mixed(500);
  const LmdbFile file(records);
  for (size_t round = 0; round < 20; ++round) {
    for (size_t i = round; i < records.size(); i += 20) {
      records[i].second = value_for(records[i].first, 1 + (i * 37 + round * 5000) % 9000);
    }
    file.write(records);
  }
  expect_holds(file.path(), records);
  file.write({{records.back().first, ""}}, true);
  records.pop_back();
  expect_holds(file.path(), records);
}

TEST(LmdbRecords, ByDescriptorAlsoWithoutAName) {
  const Pairs records = mixed(50);
  const LmdbFile file(records);
  const UniqueFd fd(open(file.path().c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(fd);
  const std::string path = "/proc/self/fd/" + std::to_string(fd.get());
  expect_holds(path, records);
  ASSERT_EQ(unlink(file.path().c_str()), 0);
  expect_holds(path, records);
}

TEST(LmdbRecords, IntegerKeysInTheirOwnOrder) {
  Pairs records;
  for (size_t i = 0; i < 1000; ++i) {
    std::string key(sizeof i, '\0');
    memcpy(key.data(), &i, sizeof i);
    records.emplace_back(key, value_for(key, 100));
  }
  const LmdbFile file(records, MDB_INTEGERKEY);
  const LmdbListing listing = listed(file.path());
  ASSERT_TRUE(listing.records) << listing.why;
  ASSERT_EQ(listing.records->size(), 1000U);
  for (size_t i = 0; i < 1000; ++i) EXPECT_EQ(listing.records->key(i), records[i].first);
}

TEST(LmdbRecords, Limits) {
  const Pairs records = mixed(1000);
  const LmdbFile file(records);
  const LmdbListing listing = listed(file.path());
  ASSERT_TRUE(listing.records);
  LmdbLimits limits;
  limits.records = 1000;
  limits.key_bytes = listing.records->key_bytes();
  limits.pages = contents(file.path()).size() / kPage;
  EXPECT_TRUE(listed(file.path(), limits).records) << "just as many as there may be";

  limits.records = 999;
  EXPECT_EQ(refused(file.path(), limits), "it has 1000 records, more than 999");
  limits = {};
  limits.key_bytes = listing.records->key_bytes() - 1;
  EXPECT_NE(refused(file.path(), limits).find("its keys take more than"), std::string::npos);
  limits = {};
  limits.index_bytes = 3 * kPage;
  EXPECT_NE(refused(file.path(), limits).find("its records are on"), std::string::npos);
  limits = {};
  limits.pages = contents(file.path()).size() / kPage - 1;
  EXPECT_NE(refused(file.path(), limits).find("pages, more than"), std::string::npos);
}

TEST(LmdbRecords, StopsOnRequest) {
  const LmdbFile file(mixed(10));
  const std::atomic<bool> stop{true};
  const LmdbListing listing = list_lmdb_records(file.path(), stop);
  EXPECT_FALSE(listing.records);
  EXPECT_EQ(listing.why, "there is no time to read it");
}

TEST(LmdbRecords, OtherKindsOfDatabases) {
  EXPECT_NE(refused(LmdbFile({{"a", "1"}, {"a", "2"}}, MDB_DUPSORT).path()).find("MDB_DUPSORT"),
            std::string::npos);
  EXPECT_NE(refused(LmdbFile(mixed(10), 0, "inner").path()).find("named databases"),
            std::string::npos);
}

TEST(LmdbRecords, NoLmdbFile) {
  const LmdbFile file({});
  set_contents(file.path(), "");
  EXPECT_EQ(refused(file.path()), "it is empty, not an LMDB file");
  set_contents(file.path(), "short");
  EXPECT_EQ(refused(file.path()), "it is not an LMDB file: 5 bytes are too few");
  set_contents(file.path(), std::string(1 << 16, 'x'));
  EXPECT_EQ(refused(file.path()), "it is not an LMDB file: it does not begin with a meta page");
  ASSERT_EQ(unlink(file.path().c_str()), 0);
  EXPECT_EQ(refused(file.path()), "cannot open it: No such file or directory");
  ASSERT_EQ(mkfifo(file.path().c_str(), 0600), 0);
  EXPECT_EQ(refused(file.path()), "it is not a file");
}

TEST(LmdbRecords, LooksLikeOne) {
  const LmdbFile file(mixed(10));
  std::string bytes = contents(file.path());
  const auto look = [&](size_t count) {
    return looks_like_lmdb(std::as_bytes(std::span(bytes).first(count)));
  };
  EXPECT_TRUE(look(bytes.size()));
  EXPECT_TRUE(look(24));
  EXPECT_FALSE(look(23));
  EXPECT_FALSE(look(0));
  for (const size_t at : {10, 16, 19, 20}) {  // the page's kind, the magic, the version
    bytes[at] = static_cast<char>(~bytes[at]);
    EXPECT_FALSE(look(24)) << at;
    bytes[at] = static_cast<char>(~bytes[at]);
  }
  bytes.assign(4096, '\0');
  EXPECT_FALSE(look(4096));
}

// Whatever the file holds: records that lie within it, or one line, which is counted.
void expect_bounded(const std::string& path, size_t size, size_t* refusals) {
  const LmdbListing listing = listed(path);
  ASSERT_NE(listing.records.has_value(), !listing.why.empty());
  ASSERT_EQ(listing.why.find('\n'), std::string::npos) << listing.why;
  *refusals += listing.records ? 0 : 1;
  for (size_t i = 0; listing.records && i < listing.records->size(); ++i) {
    ASSERT_LE(listing.records->offset(i), size);
    ASSERT_LE(listing.records->length(i), size - listing.records->offset(i));
  }
}

TEST(LmdbRecords, TruncatedAnywhere) {
  const LmdbFile file(mixed(200));
  const std::string bytes = contents(file.path());
  size_t refusals = 0;
  for (size_t size = 0; size < bytes.size(); size += size < 2 * kPage ? 97 : 1111) {
    ASSERT_EQ(truncate(file.path().c_str(), static_cast<off_t>(size)), 0);
    expect_bounded(file.path(), size, &refusals);
    set_contents(file.path(), bytes);
  }
  EXPECT_GT(refusals, 100U);
  ASSERT_EQ(truncate(file.path().c_str(), 3 * kPage), 0);
  EXPECT_NE(refused(file.path()).find("truncated"), std::string::npos);
}

TEST(LmdbRecords, DamagedAnywhere) {
  const LmdbFile file(mixed(150));
  const std::string bytes = contents(file.path());
  const UniqueFd fd(open(file.path().c_str(), O_RDWR | O_CLOEXEC));
  size_t damaged = 0;
  for (size_t at = 0; at < bytes.size(); at += at % kPage < 160 ? 1 : 41) {
    for (const uint8_t flip : {0x01, 0x80, 0xff}) {
      const char byte = static_cast<char>(static_cast<uint8_t>(bytes[at]) ^ flip);
      ASSERT_EQ(pwrite(fd.get(), &byte, 1, static_cast<off_t>(at)), 1);
      expect_bounded(file.path(), bytes.size(), &damaged);
      if (HasFatalFailure()) FAIL() << "byte " << at << " xor " << int{flip};
    }
    ASSERT_EQ(pwrite(fd.get(), &bytes[at], 1, static_cast<off_t>(at)), 1);
  }
  EXPECT_GT(damaged, 1000U);
  EXPECT_TRUE(listed(file.path()).records) << "whole again";
}

// A writer that commits all the time: what is listed is of one of its transactions.
TEST(LmdbRecords, WrittenToMeanwhile) {
  const auto round = [](size_t number) {
    Pairs records;
    for (size_t i = 0; i < 400; ++i) {
      const std::string key = std::to_string(i);
      records.emplace_back(key, std::string(100 + number % 7, static_cast<char>(number)));
    }
    return records;
  };
  const LmdbFile file(round(0));
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (size_t number = 1; !done; ++number) file.write(round(number));
  });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  size_t good = 0;
  size_t bad = 0;
  while ((good == 0 || bad == 0) && std::chrono::steady_clock::now() < deadline) {
    const LmdbListing listing = listed(file.path());
    ++(listing.records ? good : bad);
    if (!listing.records) continue;
    std::set<uint32_t> lengths;
    for (size_t i = 0; i < listing.records->size(); ++i) lengths.insert(listing.records->length(i));
    EXPECT_EQ(listing.records->size(), 400U);
    EXPECT_EQ(lengths.size(), 1U);
  }
  done = true;
  writer.join();
  EXPECT_GT(bad, 0U) << "no listing met a commit";
  EXPECT_TRUE(listed(file.path()).records);
}

}  // namespace
}  // namespace sluice::optimizer
