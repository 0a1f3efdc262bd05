// Writes mapped bytes with stdio: fwrite (buffered, unbuffered, _unlocked), fputs, puts, printf of
// long strings, dprintf, while other threads read the mapping.
#include <stdarg.h>

#include "tests/victims/buffers.h"

#define TEXT ((size_t)2 << 20)

static FILE* files[3];
static unsigned turn;
static const char* text;

static void use(size_t offset, size_t size) {
  FILE* file = files[turn++ % 3];
  size_t got = turn % 2 ? fwrite(mapped + offset, 1, size, file)
                        : fwrite_unlocked(mapped + offset, 1, size, file);
  if (got != size) printf("fwrite at %zu: %zu of %zu, errno %d\n", offset, got, size, errno);
}

static int formatted(FILE* file, const char* format, ...) {
  va_list list;
  va_start(list, format);
  int got = vfprintf(file, format, list);
  va_end(list);
  return got;
}

static void* disturb_text(void* argument) {
  uint64_t state = (uint64_t)(uintptr_t)argument;
  while (!finished) CHECK(text[draw(&state) % (TEXT - 1)] != 0);
  return NULL;
}

int main(int argc, char** argv) {
  CHECK(argc > 1);
  mapped = map_data(argv[1]);
  for (int i = 0; i < 3; ++i) {
    char name[16];
    snprintf(name, sizeof name, "out%d", i);
    files[i] = fopen(name, "w+");
    CHECK(files[i] != NULL);
  }
  CHECK(setvbuf(files[1], NULL, _IONBF, 0) == 0);
  static char wide[300000];
  CHECK(setvbuf(files[2], wide, _IOFBF, sizeof wide) == 0);
  start_disturbers();
  at_every_edge(use, 2);
  stop_disturbers();
  finished = false;

  // A text without NUL bytes but for its last, below ./data.
  FILE* made = fopen("data/text", "w");
  for (size_t i = 0; i < TEXT - 1; ++i) fputc('a' + (int)(data_byte(i) % 26), made);
  fputc(0, made);
  CHECK(fclose(made) == 0);
  int fd = open("data/text", O_RDONLY);
  text = mmap(NULL, TEXT, PROT_READ, MAP_SHARED, fd, 0);
  CHECK(text != MAP_FAILED);
  pthread_t threads[2];
  for (size_t i = 0; i < 2; ++i) {
    CHECK(pthread_create(&threads[i], NULL, disturb_text, (void*)(i + 1)) == 0);
  }
  for (size_t i = 0; i < 12; ++i) {
    const char* at = text + TEXT - 1 - (i + 1) * (CELL + 5);
    size_t size = strlen(at);
    CHECK(size == (i + 1) * (CELL + 5));
    FILE* file = files[i % 3];
    if (fputs(at, file) < 0) printf("fputs %zu\n", i);
    if (puts(at) < 0) printf("puts %zu\n", i);
    if (printf("%s|%.*s\n", at, (int)size / 2, at) != (int)(size + size / 2 + 2))
      printf("printf %zu\n", i);
    if (fprintf(file, "%s", at) != (int)size) printf("fprintf %zu\n", i);
    if (formatted(file, "<%s>", at) != (int)size + 2) printf("vfprintf %zu\n", i);
    fflush(stdout);
    if (dprintf(1, "%s\n", at) != (int)size + 1) printf("dprintf %zu\n", i);
    if (fputs_unlocked(at, file) < 0) printf("fputs_unlocked %zu\n", i);
    if (fwrite(at, size, 1, stderr) != 1) printf("stderr %zu\n", i);
  }
  fputc('\n', stderr);
  finished = true;
  for (int i = 0; i < 2; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  for (int i = 0; i < 3; ++i) {
    rewind(files[i]);
    static char buffer[1 << 16];
    uint64_t digest = DIGEST_START;
    size_t got;
    while ((got = fread(buffer, 1, sizeof buffer, files[i])) > 0) {
      digest = digest_more(digest, buffer, got);
    }
    CHECK(!ferror(files[i]));
    printf("%016lx %ld\n", digest, ftell(files[i]));
  }
  return 0;
}
