// The LMDB modes of the benchmark reader: one read transaction, a cursor from the first record to
// the last, or random keys.
#include <lmdb.h>
#include <sys/stat.h>

#include "bench/reader/pace.h"
#include "bench/reader/reader.h"

static void must(int error, const char* what) {
  if (error != 0) die(what, mdb_strerror(error));
}

// A value of this size lies on pages of its own, behind a header of 16 bytes.
static uint64_t pages_of(size_t size) {
  return (size + 16 + kPageBytes - 1) / kPageBytes * kPageBytes;
}

void lmdb_open(const struct options* o, struct source* s) {
  MDB_env* env;
  MDB_txn* txn;
  char data[4096];
  struct stat st;
  snprintf(data, sizeof data, "%s/data.mdb", o->path);
  if (stat(data, &st) != 0) die(data, "cannot be read");
  s->size = (size_t)st.st_size;
  must(mdb_env_create(&env), "mdb_env_create");
  must(mdb_env_open(env, o->path, MDB_RDONLY | MDB_NOLOCK, 0644), o->path);
  must(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn), "mdb_txn_begin");
  s->env = env;
  s->txn = txn;
}

static void random_scan(const struct options* o, MDB_txn* txn, MDB_dbi dbi, struct pass* p) {
  MDB_stat stat;
  must(mdb_stat(txn, dbi, &stat), "mdb_stat");
  uint64_t state = 42;
  for (uint64_t i = 0; i < o->random; ++i) {
    const uint64_t started = now_ns();
    char name[16];
    state += 0x9e3779b97f4a7c15U;
    snprintf(name, sizeof name, "%08u", (unsigned)(mix(state) % stat.ms_entries));
    MDB_val key = {8, name};
    MDB_val value;
    must(mdb_get(txn, dbi, &key, &value), name);
    take(o, p, started, value.mv_data, value.mv_size, pages_of(value.mv_size));
  }
}

void lmdb_scan(const struct options* o, struct source* s, struct pass* p) {
  MDB_txn* txn = s->txn;
  MDB_dbi dbi;
  MDB_cursor* cursor;
  must(mdb_dbi_open(txn, NULL, 0, &dbi), "mdb_dbi_open");
  if (o->random > 0) {
    random_scan(o, txn, dbi, p);
    return;
  }
  must(mdb_cursor_open(txn, dbi, &cursor), "mdb_cursor_open");
  for (uint64_t index = 0;; ++index) {
    const uint64_t started = now_ns();
    MDB_val key;
    MDB_val value;
    const int error = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    if (error == MDB_NOTFOUND) break;
    must(error, "mdb_cursor_get");
    if (index % o->of != o->rank) continue;
    take(o, p, started, value.mv_data, value.mv_size, pages_of(value.mv_size));
    if (o->limit > 0 && p->bytes >= o->limit) break;
  }
  mdb_cursor_close(cursor);
}
