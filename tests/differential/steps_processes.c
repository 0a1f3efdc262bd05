// Steps that begin and end processes and threads, pass descriptors on, give up rights, mount.
#include <grp.h>
#include <sched.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/differential/executor.h"

extern char** environ;

static char actor_text[kActors][8], socket_text[2][8];

static void arguments_of(int actor, char** into) {
  snprintf(actor_text[actor], sizeof actor_text[0], "%d", actor);
  for (int i = 0; i < 2; ++i) snprintf(socket_text[i], sizeof socket_text[0], "%d", g_socket[i]);
  char* all[] = {
      (char*)g_self,     (char*)g_arguments[0], (char*)g_arguments[1], (char*)g_arguments[2],
      actor_text[actor], socket_text[0],        socket_text[1],        NULL};
  memcpy(into, all, sizeof all);
}

// What the other process knows by name is what this one does, but for mappings where it executes.
static void hand_over(int actor, bool keeps_memory) {
  struct process_state* other = &g_shared->processes[actor];
  *other = g_shared->processes[g_process];
  if (!keeps_memory) memset(other->maps, 0, sizeof other->maps);
  give_birth(actor, actor);
}

static void begun(int actor, long pid) {
  if (pid < 0) atomic_store(&g_shared->state[actor], kDead);
  if (pid > 0) atomic_store(&g_shared->process_id[actor], (int32_t)pid);
  say("%s", pid < 0 ? strerrorname_np(errno) : "begun");
}

static void fork_it(const struct step* step) {
  const int actor = (int)number(step, 1);
  hand_over(actor, true);
  const pid_t pid = fork();
  if (pid != 0) {
    begun(actor, pid);
    return;
  }
  forget_threads();
  g_process = actor;
  atomic_store(&g_shared->process_id[actor], (int32_t)syscall(SYS_getpid));
  const int parent_step = g_step;
  run_actor(actor);  // leaves g_actor changed: the caller ends the process
  g_step = parent_step;
}

// vfork, some calls in the parent's memory, and execve. `lseek` moves the shared offset.
static void vfork_it(const struct step* step) {
  const int actor = (int)number(step, 1);
  char* argv[8];
  arguments_of(actor, argv);
  hand_over(actor, false);
  const int fd = *slot(step, 2);
  const long skip = number(step, 3);
  const pid_t pid = vfork();
  if (pid == 0) {
    if (skip > 0) lseek(fd, skip, SEEK_CUR);
    if (skip < 0) {
      char one[16];
      if (read(fd, one, sizeof one) < 0) _exit(96);
    }
    execve(g_self, argv, environ);
    _exit(97);
  }
  begun(actor, pid);
}

static void spawn_it(const struct step* step) {
  const int actor = (int)number(step, 1);
  char* argv[8];
  arguments_of(actor, argv);
  hand_over(actor, false);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const int fd = *slot(step, 2);
  const int to = (int)number(step, 3);
  if (to > 0 && fd >= 0) {
    posix_spawn_file_actions_adddup2(&actions, fd, to);
    g_shared->processes[actor].fds[(unsigned long)number(step, 2) % kSlots] = to;
  }
  pid_t pid = -1;
  const int result = posix_spawn(&pid, g_self, &actions, NULL, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  errno = result;
  begun(actor, result != 0 ? -1 : pid);
}

// A process without the library.
static void outside(const struct step* step) {
  const int actor = (int)number(step, 1);
  char* argv[8];
  char* none[] = {NULL};
  arguments_of(actor, argv);
  hand_over(actor, false);
  pid_t pid = -1;
  const int result = posix_spawn(&pid, g_self, NULL, NULL, argv, none);
  errno = result;
  begun(actor, result != 0 ? -1 : pid);
}

static void wait_child(const struct step* step) {
  const int32_t wanted =
      atomic_load(&g_shared->process_id[(unsigned long)number(step, 1) % kActors]);
  int status;
  if (wanted <= 0 || waitpid(wanted, &status, 0) < 0) {
    say("no child");
  } else {
    say("%s", ending(status));
  }
}

// A child that only ends.
static void fork_exit(const struct step* step) {
  const pid_t pid = fork();
  if (pid == 0) _exit((int)number(step, 1));
  int status = -1;
  if (pid > 0 && waitpid(pid, &status, 0) == pid) say("%s", ending(status));
}

static void exit_now(const struct step* step) {
  leave_for_good();
  if (number(step, 2)) exit((int)number(step, 1));
  _exit((int)number(step, 1));
}

static void send_fd(const struct step* step) {
  char byte = 'f';
  struct iovec part = {&byte, 1};
  union {
    struct cmsghdr head;
    char room[CMSG_SPACE(sizeof(int))];
  } control = {0};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  struct cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(head), slot(step, 1), sizeof(int));
  say_result(sendmsg(g_socket[0], &message, MSG_DONTWAIT | MSG_NOSIGNAL));
}
static void receive_fd(const struct step* step) {
  char byte = 0;
  struct iovec part = {&byte, 1};
  union {
    struct cmsghdr head;
    char room[CMSG_SPACE(sizeof(int))];
  } control = {0};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  const long got = recvmsg(g_socket[1], &message, MSG_DONTWAIT);
  if (got != 1 || CMSG_FIRSTHDR(&message) == NULL) {
    say_result(got);
    return;
  }
  memcpy(slot(step, 1), CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
  say("received %d", *slot(step, 1));
}

// No descriptor number is left but `spare`; opens until it fails, and frees what it opened.
static void exhaust(const struct step* step) {
  int highest = 2;
  const int probe = dup(2);
  if (probe > highest) highest = probe;
  close(probe);
  struct rlimit before;
  getrlimit(RLIMIT_NOFILE, &before);
  const struct rlimit limit = {(rlim_t)(highest + number(step, 2)), before.rlim_max};
  say_result(setrlimit(RLIMIT_NOFILE, &limit));
  int taken[64], count = 0;
  while (count < 64 && (taken[count] = open(path(step, 1), O_RDONLY | O_CLOEXEC)) >= 0) {
    say("took %d", taken[count]);
    ++count;
  }
  say_result(-1);
  for (int i = 0; i < count; ++i) {
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    if (i == 0) say_result(flock(taken[i], LOCK_SH | LOCK_NB));
    if (i == 1) say_result(fcntl(taken[i], F_SETLK, &lock));
    close(taken[i]);
  }
  setrlimit(RLIMIT_NOFILE, &before);
}

const struct operation kProcessOperations[] = {
    {"thread", begin_thread}, {"fork", fork_it},      {"vfork", vfork_it},     {"spawn", spawn_it},
    {"outside", outside},     {"wait", wait_child},   {"forkexit", fork_exit}, {"exit", exit_now},
    {"sendfd", send_fd},      {"recvfd", receive_fd}, {"exhaust", exhaust},    {NULL, NULL}};

// Rights and mounts. Mounts are made only where the driver has taken the whole run into a mount
// namespace of its own.

static bool may_mount(void) {
  return access("/proc/self/ns/mnt", F_OK) == 0 && getenv("DIFFERENTIAL_MOUNTS") != NULL;
}

static void set_groups(const struct step* step) {
  const gid_t group = (gid_t)number(step, 1);
  say_result(setgroups(group ? 1 : 0, &group));
}
static void set_user(const struct step* step) {
  const uid_t user = (uid_t)number(step, 1);
  say_result(setresuid(user, user, number(step, 2) ? 0 : user));
}
static void set_effective(const struct step* step) { say_result(seteuid((uid_t)number(step, 1))); }
static void set_group(const struct step* step) {
  const gid_t group = (gid_t)number(step, 1);
  say_result(setresgid(group, group, group));
}
static void unshare_it(const struct step* step) {
  (void)step;
  if (!may_mount()) return;
  const int result = unshare(CLONE_NEWNS);
  say_result(result);
  if (result == 0) say_result(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL));
}
static void bind_it(const struct step* step) {
  if (may_mount()) say_result(mount(path(step, 1), path(step, 2), NULL, MS_BIND, NULL));
}
static void mount_over(const struct step* step) {
  if (may_mount()) say_result(mount("over", path(step, 1), "tmpfs", 0, "size=1m,mode=755"));
}
static void unmount_it(const struct step* step) {
  if (may_mount()) say_result(umount2(path(step, 1), MNT_DETACH));
}

const struct operation kIdentityOperations[] = {
    {"setgroups", set_groups}, {"setuid", set_user},    {"seteuid", set_effective},
    {"setgid", set_group},     {"unshare", unshare_it}, {"bind", bind_it},
    {"mount", mount_over},     {"umount", unmount_it},  {NULL, NULL}};
