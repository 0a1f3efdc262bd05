// stdio on data files: fread, fgets, getline, fgetc, ungetc, fseek, freopen, fdopen, dup2 over an
// open descriptor, fmemopen beside them; from one thread, then from eight.
#include "tests/victims/victim.h"

static const char* path;

static uint64_t mixed(FILE* file, uint64_t seed) {
  uint64_t state = seed, digest = DIGEST_START;
  static __thread char buffer[70000];
  for (int i = 0; i < 3000; ++i) {
    switch (draw(&state) % 9) {
      case 0:
        digest = digest_more(digest, buffer, fread(buffer, 1, draw(&state) % sizeof buffer, file));
        break;
      case 1:
        if (fgets(buffer, 1000, file)) digest = digest_more(digest, buffer, strlen(buffer));
        break;
      case 2: {
        char* line = NULL;
        size_t size = 0;
        ssize_t got = getline(&line, &size, file);
        if (got > 0) digest = digest_more(digest, line, (size_t)got);
        free(line);
        break;
      }
      case 3: {
        int c = fgetc(file);
        if (c != EOF) ungetc(c, file);
        digest = digest_more(digest, &c, sizeof c);
        break;
      }
      case 4:
        CHECK(fseek(file, (long)(draw(&state) % DATA_SIZE), SEEK_SET) == 0);
        break;
      case 5:
        CHECK(fseeko(file, -(off_t)(draw(&state) % 100000), SEEK_END) == 0);
        break;
      case 6: {
        fpos_t place;
        CHECK(fgetpos(file, &place) == 0);
        size_t got = fread_unlocked(buffer, 7, 300, file);
        digest = digest_more(digest, buffer, got * 7);
        CHECK(fsetpos(file, &place) == 0);
        break;
      }
      case 7:
        rewind(file);
        CHECK(fseek(file, (long)(draw(&state) % 50000), SEEK_CUR) == 0);
        break;
      default: {
        long here = ftell(file);
        digest = digest_more(digest, &here, sizeof here);
      }
    }
  }
  CHECK(!ferror(file));
  return digest;
}

static uint64_t digests[8];
static void* thread(void* argument) {
  size_t me = (size_t)argument;
  FILE* file = fopen(path, me % 2 ? "r" : "rbm");
  CHECK(file != NULL);
  digests[me] = mixed(file, me);
  CHECK(fclose(file) == 0);
  return NULL;
}

int main(int argc, char** argv) {
  CHECK(argc > 1);
  path = argv[1];
  FILE* file = fopen(path, "r");
  CHECK(file != NULL);
  printf("%d %016lx\n", fileno(file), mixed(file, 1));
  file = freopen("/dev/null", "r", file);
  CHECK(file != NULL && fgetc(file) == EOF);
  file = freopen(path, "rb", file);
  printf("%d %016lx\n", fileno(file), mixed(file, 2));
  int fd = open_data(path);
  FILE* second = fdopen(fd, "r");
  CHECK(second != NULL);
  printf("%016lx\n", mixed(second, 3));
  // The descriptor becomes another file under the stream's feet.
  int null = open("/dev/null", O_RDONLY);
  CHECK(dup2(null, fd) == fd && fseek(second, 0, SEEK_END) == 0);
  printf("over: %d\n", fgetc(second));
  CHECK(dup3(fileno(file), fd, O_CLOEXEC) == fd);
  clearerr(second);
  CHECK(fseek(second, 5, SEEK_SET) == 0);
  int c = fgetc(second);
  CHECK(c == data_byte(5));
  printf("again: %d\n", c);
  CHECK(fclose(second) == 0 && fclose(file) == 0);
  // A number's next life: written, not read.
  fd = open_data(path);
  static unsigned char buffer[4096];
  CHECK(read(fd, buffer, sizeof buffer) == sizeof buffer && close(fd) == 0);
  int mine = open("mine", O_RDWR | O_CREAT, 0600);
  CHECK(mine == fd);
  CHECK(write(mine, buffer, 100) == 100 && lseek(mine, 0, SEEK_SET) == 0);
  CHECK(read(mine, buffer, sizeof buffer) == 100 && is_data(buffer, 0, 100));
  int copy = fcntl(mine, F_DUPFD, 40);
  printf("dup %d %d\n", copy, dup(mine));
  file = freopen("data/out", "w+", stdin);
  CHECK(file != NULL && fileno(file) == 0);
  CHECK(fputs("written to a stream", file) >= 0 && fseek(file, 3, SEEK_SET) == 0);
  CHECK(fgets((char*)buffer, 100, file));
  puts((char*)buffer);
  pthread_t threads[8];
  for (size_t i = 0; i < 8; ++i) CHECK(pthread_create(&threads[i], NULL, thread, (void*)i) == 0);
  for (size_t i = 0; i < 8; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  for (size_t i = 0; i < 8; ++i) printf("%016lx\n", digests[i]);
  CHECK(fcloseall() == 0);
  return 0;
}
