#include "optimizer/io/read_at_once.h"

#include <liburing.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <vector>

namespace sluice::optimizer {
namespace {

struct Piece {
  size_t at = 0, size = 0;  // bytes
  size_t done = 0;          // of these
};

std::vector<Piece> pieces_of(size_t size, size_t room) {
  const size_t requests = (size + kRequestBytes - 1) / kRequestBytes;
  const size_t each = (requests + kRequestsAtOnce - 1) / kRequestsAtOnce * kRequestBytes;
  std::vector<Piece> pieces;
  for (size_t at = 0; at < size; at += each) pieces.push_back({at, std::min(each, room - at), 0});
  return pieces;
}

// What cannot be requested, or failed, stays to be read.
void read_together(int fd, std::byte* out, std::vector<Piece>* pieces) {
  io_uring ring;
  if (io_uring_queue_init(kRequestsAtOnce, &ring, 0) != 0) return;
  for (Piece& piece : *pieces) {
    io_uring_sqe* const sqe = io_uring_get_sqe(&ring);
    io_uring_prep_read(sqe, fd, out + piece.at, static_cast<unsigned>(piece.size), piece.at);
    io_uring_sqe_set_data(sqe, &piece);
  }
  int left = io_uring_submit(&ring);
  while (left > 0) {  // until then the kernel writes to `out`
    io_uring_cqe* cqe = nullptr;
    if (io_uring_wait_cqe(&ring, &cqe) != 0) continue;
    if (cqe->res > 0) {
      static_cast<Piece*>(io_uring_cqe_get_data(cqe))->done = static_cast<size_t>(cqe->res);
    }
    io_uring_cqe_seen(&ring, cqe);
    --left;
  }
  io_uring_queue_exit(&ring);
}

int read_rest(int fd, std::byte* out, size_t size, Piece piece) {
  const size_t wanted = std::min(piece.size, size - piece.at);
  while (piece.done < wanted) {
    const size_t at = piece.at + piece.done;
    const ssize_t got = pread(fd, out + at, piece.size - piece.done, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) return ENODATA;
    piece.done += static_cast<size_t>(got);
  }
  return 0;
}

}  // namespace

int read_at_once(int fd, std::byte* out, size_t size, size_t room) {
  std::vector<Piece> pieces = pieces_of(size, room);
  if (pieces.size() > 1) read_together(fd, out, &pieces);
  for (const Piece& piece : pieces) {
    if (const int error = read_rest(fd, out, size, piece); error != 0) return error;
  }
  return 0;
}

}  // namespace sluice::optimizer
