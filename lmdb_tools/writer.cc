#include "lmdb_tools/writer.h"

#include <fcntl.h>
#include <lmdb.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "lmdb/failure.h"
#include "lmdb/tree_walk.h"
#include "protocol/unique_fd.h"

namespace sluice::lmdb {
namespace {

constexpr uint64_t kMapStep = 64U << 20;  // bytes

// The most that a batch can need: each value on pages of its own, each key on a leaf page of its
// own, a branch page above each, and the pages of the free list.
uint64_t room_for(std::span<const KeyValue> batch, uint64_t page) {
  uint64_t room = 256 * page;
  for (const KeyValue& record : batch) room += record.value.size() + 4 * page;
  return room;
}

using Environment = std::unique_ptr<MDB_env, decltype(&mdb_env_close)>;
using Transaction = std::unique_ptr<MDB_txn, decltype(&mdb_txn_abort)>;

}  // namespace

DatabaseWriter::DatabaseWriter(const std::string& out, const std::string& job)
    : partial_(out, job), data_(partial_.result() + "/data.mdb") {
  take_stock();
}

DatabaseWriter::~DatabaseWriter() {
  if (!published_ && records_ == 0) partial_.discard();
}

// liblmdb writes its two meta pages in one call when it creates a file: a file is empty only if its
// creation was interrupted before that.
void DatabaseWriter::take_stock() {
  struct stat status {};
  if (stat(data_.c_str(), &status) != 0 || status.st_size == 0) return;
  try {
    const Database database(data_);
    for_each_record(database, [this](const Record& record) {
      ++records_;
      bytes_ += record.length;
    });
    used_ = (database.meta().last_page + 1) * database.page_size();
    map_size_ = database.meta().map_size;
  } catch (const Failure& failure) {
    fail("cannot go on with an interrupted run: {}; remove {}", failure.what(), partial_.result());
  }
}

// A new environment for each transaction: liblmdb reuses page buffers from one to the next without
// clearing them, so unused parts of pages would depend on where a run began. The meta page need not
// be on disk after every commit: a lost last batch is written again.
void DatabaseWriter::commit(std::span<const KeyValue> batch) {
  const auto check = [&](int error) {
    if (error == MDB_SUCCESS) return;
    struct statvfs space {};
    // liblmdb reports a partial write as EIO.
    if (error == EIO && statvfs(data_.c_str(), &space) == 0 &&
        space.f_bavail * space.f_frsize < room_for(batch, 0)) {
      error = ENOSPC;
    }
    fail("cannot write {}: {}{}", data_, mdb_strerror(error),
         records_ == 0 ? "" : "; what is complete stays, and the same command continues it");
  };
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t needed = used_ + room_for(batch, page);
  if (needed > map_size_) map_size_ = (needed + kMapStep - 1) / kMapStep * kMapStep;

  MDB_env* opened = nullptr;
  check(mdb_env_create(&opened));
  const Environment env(opened, &mdb_env_close);
  check(mdb_env_set_mapsize(env.get(), map_size_));
  check(mdb_env_open(env.get(), data_.c_str(), MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOMETASYNC, 0666));
  MDB_txn* begun = nullptr;
  check(mdb_txn_begin(env.get(), nullptr, 0, &begun));
  Transaction txn(begun, &mdb_txn_abort);
  MDB_dbi dbi = 0;
  check(mdb_dbi_open(begun, nullptr, 0, &dbi));
  uint64_t bytes = 0;
  for (const KeyValue& record : batch) {
    MDB_val key{record.key.size(), const_cast<char*>(record.key.data())};
    MDB_val value{record.value.size(), const_cast<char*>(record.value.data())};
    check(mdb_put(begun, dbi, &key, &value, MDB_APPEND));
    bytes += record.value.size();
  }
  check(mdb_txn_commit(txn.release()));
  MDB_envinfo info{};
  check(mdb_env_info(env.get(), &info));
  used_ = (info.me_last_pgno + 1) * page;
  records_ += batch.size();
  bytes_ += bytes;
}

void DatabaseWriter::publish() {
  const UniqueFd file(open(data_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) fail("cannot open {}: {}", data_, strerror(errno));
  if (fsync(file.get()) != 0) fail("cannot write {}: {}", data_, strerror(errno));
  partial_.publish();
  published_ = true;
}

}  // namespace sluice::lmdb
