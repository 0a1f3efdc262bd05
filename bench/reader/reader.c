// reader MODE PATH [options]: reads as a training job does and prints what it cost as JSON.
#include "bench/reader/reader.h"

#include <sys/resource.h>
#include <unistd.h>

#include "bench/reader/pace.h"

static const char kUsage[] =
    "Usage: reader lmdb|map|stream|files PATH [options]\n"
    "  --pace MB      computes so long on each record that it consumes MB/s (10^6 bytes)\n"
    "                 if getting it cost nothing; without it only touches\n"
    "  --lines        touches one word per cache line, not every byte\n"
    "  --passes N     scans N times over the same mapping (1)\n"
    "  --bytes N      of each pass (all)\n"
    "  --random N     lmdb: N records by random keys instead of a scan\n"
    "  --rank I/N     lmdb: records I, I+N, ...\n"
    "  --block N      map, stream: bytes of a record (196608, 1048576)\n";

static double number(const char* text, double most) {
  char* end;
  const double value = strtod(text, &end);
  if (*text == 0 || *end != 0 || value < 0 || value > most) die("reader: not a number", text);
  return value;
}

static void usage_error(const char* what) {
  fprintf(stderr, "reader: %s\n%s", what, kUsage);
  exit(2);
}

static void parse(int argc, char** argv, struct options* o) {
  if (argc == 2 && strcmp(argv[1], "--help") == 0) {
    fputs(kUsage, stdout);
    exit(0);
  }
  if (argc < 3) usage_error("what is to be read?");
  *o = (struct options){.mode = argv[1], .path = argv[2], .passes = 1, .of = 1};
  for (int i = 3; i < argc; ++i) {
    const char* name = argv[i];
    if (strcmp(name, "--lines") == 0) {
      o->lines = true;
      continue;
    }
    const char* value = argv[++i];
    if (value == NULL) usage_error("an option without its value");
    if (strcmp(name, "--pace") == 0) {
      const double rate = number(value, 1e9);
      o->ns_per_byte = rate > 0 ? 1000 / rate : 0;
    } else if (strcmp(name, "--passes") == 0) {
      o->passes = (unsigned)number(value, 1000);
    } else if (strcmp(name, "--bytes") == 0) {
      o->limit = (uint64_t)number(value, 1e18);
    } else if (strcmp(name, "--random") == 0) {
      o->random = (uint64_t)number(value, 1e12);
    } else if (strcmp(name, "--block") == 0) {
      o->block = (size_t)number(value, 1e9);
    } else if (strcmp(name, "--rank") == 0) {
      if (sscanf(value, "%u/%u", &o->rank, &o->of) != 2 || o->rank >= o->of)
        usage_error("--rank wants I/N");
    } else {
      usage_error(name);
    }
  }
  if (o->block == 0) o->block = strcmp(o->mode, "stream") == 0 ? 1U << 20 : 196608;
}

void take(const struct options* o, struct pass* p, uint64_t started, const unsigned char* data,
          size_t size, uint64_t bytes) {
  p->digest += o->lines ? touch_lines(data, size) : touch_all(data, size);
  const uint64_t took = now_ns() - started;
  p->touch_ns += took;
  if (took > p->worst_ns) p->worst_ns = took;
  p->records += 1;
  p->bytes += bytes;
  if (o->ns_per_byte > 0) compute((uint64_t)((double)bytes * o->ns_per_byte));
}

static void scan(const struct options* o, struct source* s, struct pass* p) {
  const uint64_t started = now_ns();
  switch (o->mode[0]) {
    case 'l':
      lmdb_scan(o, s, p);
      break;
    case 'm':
      map_scan(o, s, p);
      break;
    case 's':
      stream_scan(o, s, p);
      break;
    default:
      files_scan(o, p);
      break;
  }
  p->total_ns = now_ns() - started;
}

static double seconds_of(struct timeval t) { return (double)t.tv_sec + (double)t.tv_usec / 1e6; }

// What the process used so far: distinguishes a reader that waited from one that had more to do.
static void print_usage(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  printf("\"user_s\": %.3f, \"system_s\": %.3f, \"minor_faults\": %ld, \"major_faults\": %ld, ",
         seconds_of(used.ru_utime), seconds_of(used.ru_stime), used.ru_minflt, used.ru_majflt);
}

static void print_pass(const struct pass* p) {
  printf(
      "{\"seconds\": %.6f, \"touch_s\": %.6f, \"worst_ms\": %.3f, \"records\": %llu, "
      "\"bytes\": %llu, \"digest\": \"%016llx\"}",
      (double)p->total_ns / 1e9, (double)p->touch_ns / 1e9, (double)p->worst_ns / 1e6,
      (unsigned long long)p->records, (unsigned long long)p->bytes, (unsigned long long)p->digest);
}

int main(int argc, char** argv) {
  const uint64_t started = now_ns();
  struct options o;
  parse(argc, argv, &o);
  struct source s = {.fd = -1};
  if (strcmp(o.mode, "lmdb") == 0) {
    lmdb_open(&o, &s);
  } else if (strcmp(o.mode, "map") == 0 || strcmp(o.mode, "stream") == 0) {
    file_open(&o, &s);
  } else if (strcmp(o.mode, "files") != 0) {
    usage_error("unknown mode");
  }
  const uint64_t opened = now_ns();
  struct pass* passes = calloc(o.passes, sizeof *passes);
  if (passes == NULL) die("reader", "out of memory");
  for (unsigned i = 0; i < o.passes; ++i) scan(&o, &s, &passes[i]);
  // Measured before anything is printed or torn down; the caller measures the whole process too.
  const uint64_t ended = now_ns();
  printf(
      "{\"pid\": %d, \"file_bytes\": %llu, \"started_ns\": %llu, \"ended_ns\": %llu, "
      "\"seconds\": %.6f, \"open_s\": %.6f, ",
      (int)getpid(), (unsigned long long)s.size, (unsigned long long)started,
      (unsigned long long)ended, (double)(ended - started) / 1e9, (double)(opened - started) / 1e9);
  print_usage();
  printf("\"passes\": [");
  for (unsigned i = 0; i < o.passes; ++i) {
    if (i > 0) printf(", ");
    print_pass(&passes[i]);
  }
  printf("]}\n");
  free(passes);
  return fflush(stdout) == 0 ? 0 : 1;
}
