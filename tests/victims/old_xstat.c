// As a program built against a glibc before 2.33 calls stat: through __xstat and its relatives.
#include "tests/victims/victim.h"

__asm__(".symver __xstat, __xstat@GLIBC_2.2.5");
__asm__(".symver __fxstat, __fxstat@GLIBC_2.2.5");
__asm__(".symver __lxstat, __lxstat@GLIBC_2.2.5");
__asm__(".symver __fxstatat, __fxstatat@GLIBC_2.4");
int __xstat(int version, const char* path, struct stat* out);
int __fxstat(int version, int fd, struct stat* out);
int __lxstat(int version, const char* path, struct stat* out);
int __fxstatat(int version, int folder, const char* path, struct stat* out, int flags);

int main(int argc, char** argv) {
  CHECK(argc > 1);
  struct stat info;
  CHECK(__xstat(1, argv[1], &info) == 0 && info.st_size == (off_t)DATA_SIZE);
  CHECK(__lxstat(1, argv[1], &info) == 0 && info.st_size == (off_t)DATA_SIZE);
  CHECK(__fxstatat(1, AT_FDCWD, argv[1], &info, 0) == 0 && info.st_size == (off_t)DATA_SIZE);
  int fd = open_data(argv[1]);
  CHECK(__fxstat(1, fd, &info) == 0 && info.st_size == (off_t)DATA_SIZE);
  const unsigned char* at = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fd, 0);
  printf("%016lx\n", digest_of(at, DATA_SIZE));
  printf("%d", __xstat(1, "/no/such", &info));
  printf(" %d\n", errno);
  // A path that lies in the mapped data: not text, so no such file, but never EFAULT.
  printf("%d", __xstat(1, (const char*)at + 20 * CELL - 1, &info));
  printf(" %d\n", errno);
  return 0;
}
