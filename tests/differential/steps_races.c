// Steps of programs whose actors run at the same time: what they say does not depend on which is
// faster. A disturbance says nothing; it must not change what others read.
#include <spawn.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/differential/executor.h"

extern char** environ;

// Reads what is left of a slot's file in small pieces, `rounds` times from its start.
static void slurp(const struct step* step) {
  const int fd = *slot(step, 1);
  const size_t piece = (size_t)number(step, 2);
  const int rounds = (int)number(step, 3);
  uint64_t value = 1;
  long all = 0;
  for (int round = 0; round < rounds; ++round) {
    for (ssize_t got; (got = read(fd, g_buffer, piece)) > 0; all += got)
      value = digest(value, g_buffer, (size_t)got);
    if (lseek(fd, 0, SEEK_SET) != 0) say("lseek");
  }
  say("%ld %016lx", all, value);
}

// Opens, reads in small pieces and closes a file within a sample, `rounds` times. The slot has the
// number meanwhile, for others to disturb.
static void slurp_open(const struct step* step) {
  const size_t piece = (size_t)number(step, 4);
  const int rounds = (int)number(step, 5);
  uint64_t value = 1;
  long all = 0;
  for (int round = 0; round < rounds; ++round) {
    begin_sample(number(step, 2));
    const int fd = open(path(step, 3), O_RDONLY);
    count_open(fd);
    *slot(step, 1) = fd;
    for (ssize_t got; (got = read(fd, g_buffer, piece)) > 0; all += got)
      value = digest(value, g_buffer, (size_t)got);
    end_sample(number(step, 2));
    close(fd);
  }
  say("%ld %016lx", all, value);
}

// The same with stdio.
static void slurp_file(const struct step* step) {
  const int rounds = (int)number(step, 5);
  uint64_t value = 1;
  long all = 0;
  for (int round = 0; round < rounds; ++round) {
    begin_sample(number(step, 2));
    FILE* file = fopen(path(step, 3), "r");
    if (file != NULL) {
      *slot(step, 1) = fileno(file);
      for (size_t got; (got = fread(g_buffer, 1, 500, file)) > 0; all += (long)got)
        value = digest(value, g_buffer, got);
      fclose(file);
    }
    end_sample(number(step, 2));
  }
  say("%ld %016lx", all, value);
}

// The actors that share a slot's offset read each byte once, whoever gets it.
static void share(const struct step* step) {
  const int fd = *slot(step, 1);
  const size_t piece = (size_t)number(step, 2);
  uint64_t sum = 0;
  for (ssize_t got; (got = read(fd, g_buffer, piece)) > 0;) {
    for (ssize_t i = 0; i < got; ++i) sum += (g_buffer[i] + 1ULL) * 0x9E3779B97F4A7C15ULL;
  }
  atomic_fetch_add(&g_shared->sum, sum);
}
// The last step of the actor that began the others.
static void sum_up(const struct step* step) {
  for (int i = 1; i < step->count; ++i) {
    const int actor = (int)number(step, i);
    const int32_t pid = atomic_load(&g_shared->process_id[actor]);
    while (atomic_load(&g_shared->state[actor]) == kAlive &&
           atomic_load(&g_shared->process[actor]) == g_process) {
      usleep(200);  // a thread
    }
    if (atomic_load(&g_shared->process[actor]) != g_process && pid > 0) waitpid(pid, NULL, 0);
  }
  say("sum %016lx", atomic_load(&g_shared->sum));
}

static void one_disturbance(const char* kind, int fd) {
  char name[64], text[1024];
  struct stat about;
  if (strcmp(kind, "fork") == 0) {
    const pid_t pid = fork();
    if (pid == 0) _exit(0);
    if (pid > 0) waitpid(pid, NULL, 0);
  } else if (strcmp(kind, "spawn") == 0) {
    char* argv[] = {"/bin/true", NULL};
    char* none[] = {NULL};
    pid_t pid;
    if (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, none) == 0) waitpid(pid, NULL, 0);
  } else if (strcmp(kind, "link") == 0) {
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    if (readlink(name, text, sizeof text) < 0) return;
  } else if (strcmp(kind, "dup") == 0) {
    const int other = dup(fd);
    if (other >= 0) close(other);
  } else if (strcmp(kind, "stat") == 0) {
    fstat(fd, &about);
  } else if (strcmp(kind, "lock") == 0) {
    flock(fd, LOCK_SH | LOCK_NB);
  } else if (strcmp(kind, "map") == 0) {
    void* at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED) munmap(at, 4096);
  } else if (strcmp(kind, "pread") == 0) {
    if (pread(fd, text, sizeof text, 0) < 0) return;
  } else if (strcmp(kind, "xattr") == 0) {
    fcntl(fd, F_GETFL);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    stat(name, &about);
  }
}
static void disturb(const struct step* step) {
  const int rounds = (int)number(step, 3);
  for (int round = 0; round < rounds; ++round) one_disturbance(word(step, 2), *slot(step, 1));
}

// Reads of a mapping that others read, fork and unmap copies of.
static void scan(const struct step* step) {
  const struct shared_map* map = map_slot(step, 1);
  const int rounds = (int)number(step, 2);
  uint64_t value = 1;
  for (int round = 0; round < rounds && map->at != NULL; ++round) {
    for (size_t at = 0; at < map->size; at += 509) value = (value ^ map->at[at]) * 1099511628211ULL;
  }
  say("%016lx", value);
}

const struct operation kRaceOperations[] = {{"slurp", slurp},
                                            {"slurpopen", slurp_open},
                                            {"slurpfile", slurp_file},
                                            {"share", share},
                                            {"sumup", sum_up},
                                            {"disturb", disturb},
                                            {"scan", scan},
                                            {NULL, NULL}};
