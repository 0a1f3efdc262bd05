// The executor of random programs: what its parts share. A program is a list of steps, each of
// which belongs to one actor, a thread or a process. README.md describes the steps and the log.
//
// All that actors share lies in one file that every process maps with raw system calls: the library
// under test sees neither the log nor the baton.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
  kActors = 8,
  kSlots = 16,        // descriptors that steps name, in each process
  kMaps = 8,          // mappings that steps name, in each process
  kWords = 12,        // in a step
  kSteps = 512,       // in a program
  kFiles = 64,        // samples of a program
  kBuffer = 1 << 18,  // bytes that one step may read
  kLog = 1 << 20,
};

enum actor_state { kUnborn, kAlive, kDead };

struct shared_map {
  unsigned char* at;
  size_t size;
  bool writable;
};

// What a process knows by name; the index is the actor that began the process.
struct process_state {
  int fds[kSlots];
  struct shared_map maps[kMaps];
};

// Which file it is. The number alone does not say so: the next file that is made on the file system
// gets it once a file is gone. When that is depends on which process has it open, the optimizer for
// one, and which file is next on every process that makes some. Births are 0 where the file system
// knows none.
struct identity {
  uint64_t device, inode;
  int64_t born_s;
  uint32_t born_ns;
};

struct shared {
  _Atomic uint32_t turn;  // the step whose actor may run
  _Atomic uint32_t state[kActors];
  _Atomic int32_t process_id[kActors];  // of the actor's process
  _Atomic int32_t process[kActors];     // the actor that began the actor's process
  _Atomic uint64_t sum;                 // of what the actors of a race read together
  _Atomic uint32_t opened, copies;      // for reading, within samples; of those a copy
  _Atomic uint32_t staged;              // samples that were staged when the program began
  _Atomic uint32_t used;                // bytes of the log
  struct identity identity[kFiles];     // of the files before the first step
  struct process_state processes[kActors];
  char log[kLog];
};

struct step {
  int actor;
  int count;
  const char* words[kWords];  // the operation first
};

struct program {
  bool race, wait;
  int count, file_count;
  struct step steps[kSteps];
  const char* files[kFiles];
  char text[1 << 16];
};

extern struct shared* g_shared;
extern struct program g_program;
extern const char* g_self;          // path of this executable
extern const char* g_arguments[3];  // program, log, tree
extern char g_tree[1024];           // the folder that steps are about
extern int g_process;               // the actor that began this process
extern int g_socket[2];             // what descriptors are passed through
extern __thread int g_actor;
extern __thread int g_step;
extern __thread unsigned char g_buffer[kBuffer];

// Ends the process with 98 if the executor itself is at fault: never a difference.
__attribute__((noreturn, format(printf, 1, 2))) void broken(const char* format, ...);

// One line of the step's log.
__attribute__((format(printf, 1, 2))) void say(const char* format, ...);
// "result", and errno if that is -1.
void say_result(long result);
// The same with a digest of `size` bytes.
void say_bytes(long result, const void* bytes);
uint64_t digest(uint64_t start, const void* bytes, size_t size);

// Arguments of the step, by number from 1. Missing ones are "" and 0.
const char* word(const struct step* step, int index);
long number(const struct step* step, int index);
int* slot(const struct step* step, int index);
struct shared_map* map_slot(const struct step* step, int index);
// TREE/word, or the word as it is if it begins with '/' or, without its '@', relative.
const char* path(const struct step* step, int index);

typedef void perform_fn(const struct step* step);
struct operation {
  const char* name;
  perform_fn* perform;
};
// Each ends with a NULL name.
extern const struct operation kFileOperations[], kReadOperations[], kMapOperations[],
    kPathOperations[], kProcessOperations[], kIdentityOperations[], kSignalOperations[],
    kRaceOperations[];

// Runs all steps of an actor; returns when it has none left.
void run_actor(int actor);
// Waits for the process's threads and children and ends it.
__attribute__((noreturn)) void end_process(int status);
// The turn passes on; actors of this process get none any more. Before a step that ends it.
void leave_for_good(void);
void begin_thread(const struct step* step);
// In a fork's child: the threads of its parent are not here.
void forget_threads(void);
// How a child ended, in words; the actor that began a process, -1 if none did.
const char* ending(int status);
int actor_of(int32_t process_id);
// To be called before the first step. No file that a step makes is born when these were: the clock
// of births, which ticks every few milliseconds, has gone on when this returns.
void remember_files(void);
// The name in the tree, before the first step, of the file that `s` is about; "new" and "elsewhere"
// if it is none of these. `s` was asked of `folder` and `name` as statx() is, which says when the
// file was born.
const char* which_file(const struct stat* s, int folder, const char* name, int flags);
// Marks `actor` as part of process `process`.
void give_birth(int actor, int process);
// Installs the handlers that steps may jump out of.
void prepare_signals(void);
extern __thread sigjmp_buf g_jump;
extern __thread volatile bool g_jump_armed;

// Sluice's own functions; nothing happens where the library is not loaded.
void declare_samples(void);
void begin_sample(long index);
void end_sample(long index);
void count_open(int fd);
