// Hands mapped bytes to the kernel through a descriptor, at every edge, with every call there is,
// while other threads read the mapping: write_fd ... pipe|socket|file|datagram. Not one call may
// come up short or fail, and the other side must see the bytes.
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "tests/victims/buffers.h"

static int in, out;
static bool is_file, is_datagram;
static unsigned turn;
static uint64_t total, calls;
static off_t place;

static void* collector(void* argument) {
  (void)argument;
  static unsigned char buffer[1 << 20];
  uint64_t digest = DIGEST_START;
  for (;;) {
    ssize_t got = read(in, buffer, sizeof buffer);
    CHECK(got >= 0);
    if (got == (is_datagram ? 5 : 0)) break;
    digest = digest_more(digest, buffer, (size_t)got);
  }
  printf("%016lx\n", digest);
  return NULL;
}

static void use(size_t offset, size_t size) {
  const unsigned char* at = mapped + offset;
  if (is_datagram && size > 100000) size = 100000;
  struct iovec parts[3] = {
      {(void*)at, size / 3}, {"middle", 6}, {(void*)(at + size / 3), size - size / 3}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
  ssize_t want = (ssize_t)size, got = -1;
  unsigned way = turn++ % 7;
  if (is_file) {
    switch (way) {
      case 0:
        got = write(out, at, size);
        break;
      case 1:
        got = pwrite(out, at, size, place), lseek(out, got, SEEK_CUR);
        break;
      case 2:
        want += 6, got = writev(out, parts, 3);
        break;
      case 3:
        want += 6, got = pwritev(out, parts, 3, place), lseek(out, got, SEEK_CUR);
        break;
      case 4:
        want += 6, got = pwritev2(out, parts, 3, -1, 0);
        break;
      case 5:
        got = syscall(SYS_write, out, at, size);
        break;
      case 6:
        got = pwrite64(out, at, size, place), lseek(out, got, SEEK_CUR);
        break;
    }
    if (got > 0) place += got;
  } else {
    switch (way) {
      case 0:
        got = write(out, at, size);
        break;
      case 1:
        want += 6, got = writev(out, parts, 3);
        break;
      case 2:
        got = syscall(SYS_write, out, at, size);
        break;
      case 3:
        got = write(out, at, size);
        break;
      default: {
        int type;
        socklen_t length = sizeof type;
        if (getsockopt(out, SOL_SOCKET, SO_TYPE, &type, &length) != 0) {
          got = write(out, at, size);
        } else if (way == 4) {
          got = send(out, at, size, 0);
        } else if (way == 5) {
          want += 6, got = sendmsg(out, &message, 0);
        } else {
          struct mmsghdr many[2] = {{.msg_hdr = {.msg_iov = parts, .msg_iovlen = 1}},
                                    {.msg_hdr = {.msg_iov = parts + 2, .msg_iovlen = 1}}};
          CHECK(sendmmsg(out, many, 2, 0) == 2);
          got = (ssize_t)(many[0].msg_len + many[1].msg_len);
        }
      }
    }
  }
  if (got != want) {
    printf("way %u offset %zu size %zu: %zd of %zd, errno %d\n", way, offset, size, got, want,
           errno);
  }
  ++calls;
  total += (uint64_t)want;
}

int main(int argc, char** argv) {
  CHECK(argc > 4);
  const char* kind = argv[4];
  int pair[2];
  pthread_t reader;
  is_file = !strcmp(kind, "file");
  is_datagram = !strcmp(kind, "datagram");
  if (!strcmp(kind, "pipe")) {
    CHECK(pipe(pair) == 0);
    in = pair[0], out = pair[1];
  } else if (is_file) {
    out = open("copy", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(out >= 0);
  } else {
    CHECK(socketpair(AF_UNIX, is_datagram ? SOCK_DGRAM : SOCK_STREAM, 0, pair) == 0);
    in = pair[0], out = pair[1];
  }
  mapped = map_data(argv[1]);
  if (!is_file) CHECK(pthread_create(&reader, NULL, collector, NULL) == 0);
  start_disturbers();
  at_every_edge(use, 1);
  stop_disturbers();
  if (is_datagram) CHECK(write(out, "ended", 5) == 5);
  if (is_file) {
    in = out;
    CHECK(lseek(in, 0, SEEK_END) == (off_t)total && lseek(in, 0, SEEK_SET) == 0);
    collector(NULL);
  } else {
    if (!is_datagram) CHECK(close(out) == 0);
    CHECK(pthread_join(reader, NULL) == 0);
  }
  printf("%lu calls, %lu bytes\n", calls, total);
  return 0;
}
