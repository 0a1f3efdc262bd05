// process_vm_writev and process_vm_readv with mapped bytes on the local and the remote side.
#include "tests/victims/buffers.h"

static unsigned char target[4 * CELL];

static void use(size_t offset, size_t size) {
  struct iovec local = {(void*)(mapped + offset), size}, remote = {target, size};
  ssize_t got = process_vm_writev(getpid(), &local, 1, &remote, 1, 0);
  if (got != (ssize_t)size)
    printf("writev at %zu: %zd of %zu errno %d\n", offset, got, size, errno);
  CHECK(memcmp(target, mapped + offset, size) == 0);
}

int main(int argc, char** argv) {
  CHECK(argc > 1);
  mapped = map_data(argv[1]);
  memset(target, 1, sizeof target);
  struct iovec probe = {target, 1}, other = {target + 1, 1};
  if (process_vm_writev(getpid(), &probe, 1, &other, 1, 0) != 1) {
    puts("process_vm_writev is not allowed here");
    return 77;
  }
  start_disturbers();
  at_every_edge(use, 3);
  stop_disturbers();
  puts("done");
  return 0;
}
