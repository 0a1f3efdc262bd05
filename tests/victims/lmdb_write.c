// A job that writes an LMDB of its own below ./data and reads it back while it grows.
#include <lmdb.h>

#include "tests/victims/victim.h"

int main(void) {
  CHECK(mkdir("data/db", 0700) == 0);
  MDB_env* env;
  CHECK(mdb_env_create(&env) == 0);
  CHECK(mdb_env_set_mapsize(env, (size_t)256 << 20) == 0);
  CHECK(mdb_env_open(env, "data/db", MDB_NOSYNC, 0644) == 0);
  MDB_dbi dbi;
  static unsigned char value[20000];
  uint64_t digest = DIGEST_START;
  for (uint32_t round = 0; round < 20; ++round) {
    MDB_txn* txn;
    CHECK(mdb_txn_begin(env, NULL, 0, &txn) == 0);
    CHECK(mdb_dbi_open(txn, NULL, 0, &dbi) == 0);
    for (uint32_t i = 0; i < 50; ++i) {
      uint32_t id = __builtin_bswap32(round * 50 + i);
      memset(value, (int)(round * 50 + i), sizeof value);
      MDB_val key = {sizeof id, &id}, data = {sizeof value - i, value};
      CHECK(mdb_put(txn, dbi, &key, &data, 0) == 0);
    }
    CHECK(mdb_txn_commit(txn) == 0);
    CHECK(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn) == 0);
    MDB_cursor* cursor;
    CHECK(mdb_cursor_open(txn, dbi, &cursor) == 0);
    MDB_val key, data;
    while (mdb_cursor_get(cursor, &key, &data, MDB_NEXT) == 0) {
      digest = digest_more(digest, data.mv_data, 16);
    }
    mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
  }
  mdb_env_close(env);
  printf("%016lx\n", digest);
  return 0;
}
