// make-data FOLDER BYTES [FILES]: an LMDB of pseudo-random records of 196,608 bytes, appended in
// the order of their keys (00000000, ...) until data.mdb has at least BYTES; or, with FILES, a
// folder of that many files which hold the same records.
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/reader/pace.h"

enum { kRecord = 196608, kPerRecord = kRecord + kPageBytes, kPerTransaction = 1024 };

static void must(int error, const char* what) {
  if (error != 0) die(what, mdb_strerror(error));
}

static void make_record(unsigned index, unsigned char* record) {
  uint64_t x = mix(index + 1);
  for (size_t i = 0; i < kRecord; i += sizeof x) {
    x = x * 6364136223846793005U + 1442695040888963407U;
    const uint64_t word = x ^ (x >> 29);
    memcpy(record + i, &word, sizeof word);
  }
}

static void make_database(const char* folder, uint64_t bytes, unsigned char* record) {
  MDB_env* env;
  MDB_txn* txn;
  MDB_dbi dbi;
  const unsigned count = (unsigned)((bytes + kPerRecord - 1) / kPerRecord);
  must(mdb_env_create(&env), "mdb_env_create");
  must(mdb_env_set_mapsize(env, (size_t)count * kPerRecord * 21 / 20 + (64U << 20)), "mapsize");
  must(mdb_env_open(env, folder, MDB_NOSYNC, 0644), folder);
  for (unsigned index = 0; index < count;) {
    must(mdb_txn_begin(env, NULL, 0, &txn), "mdb_txn_begin");
    must(mdb_dbi_open(txn, NULL, MDB_CREATE, &dbi), "mdb_dbi_open");
    for (unsigned i = 0; i < kPerTransaction && index < count; ++i, ++index) {
      char name[16];
      snprintf(name, sizeof name, "%08u", index);
      make_record(index, record);
      MDB_val key = {8, name};
      MDB_val value = {kRecord, record};
      must(mdb_put(txn, dbi, &key, &value, MDB_APPEND), "mdb_put");
    }
    must(mdb_txn_commit(txn), "mdb_txn_commit");
  }
  must(mdb_env_sync(env, 1), "mdb_env_sync");
  mdb_env_close(env);
}

static void make_file(const char* folder, unsigned index, unsigned char* record) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%08u", folder, index);
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  make_record(index, record);
  if (fd < 0 || write(fd, record, kRecord) != kRecord || close(fd) != 0) die(path, strerror(errno));
}

int main(int argc, char** argv) {
  char* end = NULL;
  const uint64_t bytes = argc > 2 ? strtoull(argv[2], &end, 10) : 0;
  const unsigned files = argc > 3 ? (unsigned)strtoul(argv[3], &end, 10) : 0;
  if (argc < 3 || argc > 4 || *end != 0 || bytes == 0) {
    fprintf(stderr, "Usage: make-data FOLDER BYTES [FILES]\n");
    return 2;
  }
  unsigned char* record = malloc(kRecord);
  if (record == NULL) die("make-data", "out of memory");
  if (mkdir(argv[1], 0755) != 0) die(argv[1], strerror(errno));
  if (files == 0) make_database(argv[1], bytes, record);
  for (unsigned i = 0; i < files; ++i) make_file(argv[1], i, record);
  free(record);
  return 0;
}
