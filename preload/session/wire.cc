#include "preload/session/wire.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "preload/base/own_descriptor.h"
#include "preload/base/sys.h"

namespace sluice::preload {
namespace {

bool wait_for(int fd, short events, uint64_t deadline_ns) {
  for (;;) {
    const uint64_t now = sys::now_ns();
    if (now >= deadline_ns) return false;
    const uint64_t left = deadline_ns - now;
    struct timespec timeout = {static_cast<time_t>(left / 1000000000U),
                               static_cast<long>(left % 1000000000U)};
    struct pollfd poll = {fd, events, 0};
    const long ready = sys::call(SYS_ppoll, sys::word(&poll), 1, sys::word(&timeout), 0, 0);
    if (ready > 0) return true;
    if (ready < 0 && ready != -EINTR) return false;
  }
}

Asked connect_to(const OwnDescriptor& socket, const char* path, uint64_t deadline_ns, int* pid) {
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (strlen(path) >= sizeof address.sun_path) return Asked::kNoListener;
  strcpy(address.sun_path, path);
  for (;;) {
    const long result =
        sys::call(SYS_connect, socket.number(), sys::word(&address), sizeof address);
    if (result == 0) break;
    if (result != -EAGAIN) return result == -EACCES ? Asked::kOtherUser : Asked::kNoListener;
    // The listen backlog is full: the optimizer is stopped, or very busy.
    if (sys::now_ns() >= deadline_ns) return Asked::kLate;
    struct timespec pause = {0, 1000000};
    sys::call(SYS_nanosleep, sys::word(&pause), 0);
  }
  struct ucred peer = {};
  socklen_t size = sizeof peer;
  if (sys::call(SYS_getsockopt, socket.number(), SOL_SOCKET, SO_PEERCRED, sys::word(&peer),
                sys::word(&size)) != 0 ||
      peer.uid != static_cast<uid_t>(sys::call(SYS_geteuid))) {
    return Asked::kOtherUser;
  }
  *pid = peer.pid;
  return Asked::kAnswered;
}

Asked send_message(const OwnDescriptor& socket, protocol::MessageKind kind, iovec (&parts)[3],
                   int fd) {
  protocol::MessageHeader header;
  header.kind = kind;
  parts[0] = {&header, sizeof header};
  struct msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = 3;
  alignas(struct cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  if (fd >= 0) {
    message.msg_control = space;
    message.msg_controllen = sizeof space;
    struct cmsghdr* control = CMSG_FIRSTHDR(&message);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(control), &fd, sizeof fd);
  }
  if (!socket.ours()) return Asked::kBroken;
  const long sent = sys::call(SYS_sendmsg, socket.number(), sys::word(&message), MSG_NOSIGNAL);
  return sent > 0 ? Asked::kAnswered : Asked::kNoListener;
}

Asked receive_message(const OwnDescriptor& socket, uint64_t deadline_ns, Answer* answer) {
  if (!wait_for(socket.number(), POLLIN, deadline_ns)) return Asked::kLate;
  if (!socket.ours()) return Asked::kBroken;  // the job closed it, and may reuse its number
  protocol::MessageHeader header;
  struct iovec parts[2] = {{&header, sizeof header}, {answer->body, sizeof answer->body}};
  struct msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  alignas(struct cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  const long got = sys::call(SYS_recvmsg, socket.number(), sys::word(&message), MSG_CMSG_CLOEXEC);
  if (got <= 0) return Asked::kNoListener;
  struct cmsghdr* control = CMSG_FIRSTHDR(&message);
  if (control != nullptr && control->cmsg_type == SCM_RIGHTS &&
      control->cmsg_len == CMSG_LEN(sizeof(int))) {
    memcpy(&answer->fd, CMSG_DATA(control), sizeof answer->fd);
  }
  if (static_cast<size_t>(got) < sizeof header || header.magic != protocol::kControlMagic ||
      header.version != protocol::kVersion) {
    return Asked::kBroken;
  }
  answer->kind = header.kind;
  answer->size = static_cast<size_t>(got) - sizeof header;
  return Asked::kAnswered;
}

// `aside`: with a higher number than the lowest free one, if the process may have another.
long open_socket(bool aside) {
  const long lowest =
      sys::call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (!aside || sys::failed(lowest)) return lowest;
  const long moved = sys::call(SYS_fcntl, lowest, F_DUPFD_CLOEXEC, lowest + 1);
  if (sys::failed(moved)) return lowest;
  sys::close(static_cast<int>(lowest));
  return moved;
}

void close_passed(Answer* answer) {
  if (answer->fd >= 0) sys::close(answer->fd);
  answer->fd = -1;
}

}  // namespace

bool folder_is_ours(const char* folder, bool* exists) {
  struct stat about;
  const long result = sys::call(SYS_lstat, sys::word(folder), sys::word(&about));
  *exists = result == 0;
  return result == 0 && S_ISDIR(about.st_mode) && (about.st_mode & 0077) == 0 &&
         about.st_uid == static_cast<uid_t>(sys::call(SYS_geteuid));
}

Asked ask(const char* path, uint64_t deadline_ns, Work work, protocol::MessageKind kind,
          const void* body, size_t body_size, const void* text, size_t text_size, int fd,
          Answer* answer) {
  const OwnDescriptor socket(open_socket(answer->lowest_fd));
  if (socket.number() < 0) return Asked::kNoListener;
  struct iovec parts[3] = {
      {}, {const_cast<void*>(body), body_size}, {const_cast<void*>(text), text_size}};
  Asked asked = connect_to(socket, path, deadline_ns, &answer->peer);
  if (asked == Asked::kAnswered) asked = send_message(socket, kind, parts, fd);
  if (asked == Asked::kAnswered) asked = receive_message(socket, deadline_ns, answer);
  const uint64_t last_ns = sys::now_ns() + work.most_ns;
  while (asked == Asked::kAnswered && answer->kind == protocol::MessageKind::kWorking) {
    close_passed(answer);
    answer->heard_ns = sys::now_ns();
    const uint64_t next_ns = answer->heard_ns + work.silent_ns;
    asked = receive_message(socket, next_ns < last_ns ? next_ns : last_ns, answer);
    if (asked == Asked::kLate && sys::now_ns() >= last_ns) asked = Asked::kBusy;
  }
  if (asked != Asked::kAnswered) close_passed(answer);
  return asked;
}

}  // namespace sluice::preload
