// Reads an LMDB in C: lmdb_read ... scan (one transaction, a cursor), txn (a transaction a
// record), random (50,000 lookups), threads (four readers).
#include <lmdb.h>

#include "tests/victims/victim.h"

#define RECORDS 2000

static MDB_env* env;
static MDB_dbi dbi;

static uint64_t look_up(MDB_txn* txn, unsigned record, uint64_t digest) {
  char name[16];
  snprintf(name, sizeof name, "%08u", record);
  MDB_val key = {8, name}, value;
  CHECK(mdb_get(txn, dbi, &key, &value) == 0);
  uint32_t index;
  memcpy(&index, value.mv_data, sizeof index);
  CHECK(index == record);
  return digest_more(digest, value.mv_data, value.mv_size);
}

static uint64_t scan(void) {
  MDB_txn* txn;
  MDB_cursor* cursor;
  CHECK(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn) == 0);
  CHECK(mdb_cursor_open(txn, dbi, &cursor) == 0);
  MDB_val key, value;
  uint64_t digest = DIGEST_START, count = 0;
  while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0) {
    digest = digest_more(digest, key.mv_data, key.mv_size);
    digest = digest_more(digest, value.mv_data, value.mv_size);
    ++count;
  }
  CHECK(count == RECORDS);
  mdb_cursor_close(cursor);
  mdb_txn_abort(txn);
  return digest;
}

static uint64_t one_by_one(void) {
  uint64_t digest = DIGEST_START;
  for (unsigned i = 0; i < RECORDS; ++i) {
    MDB_txn* txn;
    CHECK(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn) == 0);
    digest = look_up(txn, i, digest);
    mdb_txn_abort(txn);
  }
  return digest;
}

static uint64_t at_random(void) {
  MDB_txn* txn;
  CHECK(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn) == 0);
  uint64_t state = 3, digest = DIGEST_START;
  for (int i = 0; i < 4000; ++i) digest = look_up(txn, (unsigned)(draw(&state) % RECORDS), digest);
  mdb_txn_abort(txn);
  return digest;
}

static void* thread(void* argument) {
  uint64_t* digest = argument;
  *digest = *digest % 2 ? one_by_one() : scan();
  return NULL;
}

int main(int argc, char** argv) {
  CHECK(argc > 4);
  CHECK(mdb_env_create(&env) == 0);
  CHECK(mdb_env_set_mapsize(env, (size_t)1 << 30) == 0);
  CHECK(mdb_env_open(env, argv[3], MDB_RDONLY, 0644) == 0);
  MDB_txn* txn;
  CHECK(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn) == 0);
  CHECK(mdb_dbi_open(txn, NULL, 0, &dbi) == 0);
  CHECK(mdb_txn_commit(txn) == 0);
  for (int epoch = 0; epoch < 2; ++epoch) {
    if (!strcmp(argv[4], "scan")) printf("%016lx\n", scan());
    if (!strcmp(argv[4], "txn")) printf("%016lx\n", one_by_one());
    if (!strcmp(argv[4], "random")) printf("%016lx\n", at_random());
    if (!strcmp(argv[4], "threads")) {
      pthread_t threads[4];
      uint64_t digests[4] = {0, 1, 2, 3};
      for (int i = 0; i < 4; ++i) {
        CHECK(pthread_create(&threads[i], NULL, thread, &digests[i]) == 0);
      }
      for (int i = 0; i < 4; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
      for (int i = 0; i < 4; ++i) printf("%016lx\n", digests[i]);
    }
  }
  mdb_env_close(env);
  return 0;
}
