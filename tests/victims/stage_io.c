// Reading staged files by stdio, over holes and by transfers: as the originals are read.
#include <linux/fs.h>
#include <sys/sendfile.h>

#include "tests/victims/stage.h"

static const char* const kNames[] = {"f0", "f1", "f2", "f3", "sparse"};

static int staged(const char* name) {
  begin_stage(kNames, 5);
  return open_copy(at(name), O_RDONLY | O_CLOEXEC);
}

static void stdio(void) {
  close(staged("f3"));
  for (const char* const* mode = (const char* const[]){"r", "rb", "re", "rm", NULL}; *mode != NULL;
       ++mode) {
    FILE* file = fopen(at("f3"), *mode);
    static char buffer[300000];
    CHECK(file != NULL && fread(buffer, 1, 1000, file) == 1000);
    CHECK(fseek(file, -5, SEEK_END) == 0);
    say("%s: at %ld", *mode, ftell(file));
    say("rest %zu eof %d", fread(buffer, 1, 100, file), feof(file) != 0);
    rewind(file);
    say("whole %zu %lx", fread(buffer, 1, sizeof buffer, file), digest_of(buffer, sizeof buffer));
    say("flags %x marks %x", fcntl(fileno(file), F_GETFL), fcntl(fileno(file), F_GETFD));
    CHECK(ungetc('x', file) == 'x' && fgetc(file) == 'x');
    fclose(file);
  }
  FILE* file = fopen(at("f3"), "r");
  CHECK(freopen(at("f2"), "r", file) == file);
  struct stat s;
  say_stat("another", fstat(fileno(file), &s), &s);
  fclose(file);
  const int fd = open_copy(at("f3"), O_RDONLY);
  file = fdopen(fd, "r");
  say("%d %d", fgetc(file), fgetc(file));
  CHECK(fdopen(fd, "w") == NULL);
  fclose(file);
  SAY_RESULT(fstat(fd, &s));
  file = fdopen(open_copy(at("f3"), O_RDONLY), "r");
  CHECK(fgetc(file) >= 0);
  if (freopen(NULL, "r+", file) == NULL) {
    say("reopened: %s", strerror(errno));
    return;
  }
  say("reopened %d %x copy %d", fgetc(file), fcntl(fileno(file), F_GETFL), is_copy(fileno(file)));
  fclose(file);
}

static void holes(void) {
  const int fd = staged("sparse");
  for (off_t offset = 0; offset >= 0 && offset < 3 << 20;) {
    const off_t data = lseek(fd, offset, SEEK_DATA);
    const off_t hole = lseek(fd, offset, SEEK_HOLE);
    say("from %ld: data %ld hole %ld", (long)offset, (long)data, (long)hole);
    offset += 1 << 18;
  }
  SAY_RESULT(lseek(fd, 1L << 50, SEEK_SET));
  SAY_RESULT(lseek(fd, -1, SEEK_SET));
  SAY_RESULT(lseek(fd, 0, 99));
}

static void transfers(void) {
  const int fd = staged("f3");
  int out = open(at("out"), O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (out < 0) out = memfd_create("out", 0);  // a mount for reading
  SAY_RESULT(copy_file_range(fd, NULL, out, NULL, 10000, 0));
  SAY_RESULT(sendfile(out, fd, NULL, 10000));
  off_t offset = 7;
  SAY_RESULT(sendfile(out, fd, &offset, 10000));
  int ends[2];
  CHECK(pipe(ends) == 0);
  SAY_RESULT(splice(fd, NULL, ends[1], NULL, 4096, 0));
  SAY_RESULT(splice(ends[0], NULL, out, NULL, 4096, 0));
  CHECK(lseek(out, 0, SEEK_SET) == 0);
  say("got %lx, source at %ld", digest_rest(out), (long)lseek(fd, 0, SEEK_CUR));
  const int other = open_copy(at("f2"), O_RDONLY);
  SAY_RESULT(ioctl(out, FICLONE, other));
  SAY_RESULT(ftruncate(other, 3));
  SAY_RESULT(write(other, "x", 1));
  SAY_RESULT(fsync(other));
  SAY_RESULT(posix_fadvise(other, 0, 0, POSIX_FADV_SEQUENTIAL));
  SAY_RESULT(fallocate(other, 0, 0, 10));
  SAY_RESULT(linkat(other, "", AT_FDCWD, at("linked"), AT_EMPTY_PATH));
  unlink(at("linked"));
  unlink(at("out"));
}

static const struct stage_case kCases[] = {
    {"stdio", stdio}, {"holes", holes}, {"transfers", transfers}, {NULL, NULL}};

int main(int argc, char** argv) { return run_case(kCases, argc, argv); }
