// touch-memory MIB: writes to so much memory and gives it back.
//
// A virtual machine may have handed free memory to its host, and the first touch of such a page
// then costs several times as much, out of whatever processor time the run that is about to be
// measured has. After this, free memory is the machine's own again.
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

int main(int argc, char** argv) {
  const size_t size = argc == 2 ? strtoul(argv[1], NULL, 10) << 20 : 0;
  if (size == 0) {
    fprintf(stderr, "Usage: touch-memory MIB\n");
    return 2;
  }
  char* at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) {
    perror("touch-memory");
    return 1;
  }
  for (size_t offset = 0; offset < size; offset += 4096) at[offset] = 1;
  return 0;
}
