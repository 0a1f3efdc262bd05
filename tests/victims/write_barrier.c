// A garbage collector's write barrier: pages of its own are protected, its handler opens each at
// the first write and counts, while data is read from a mapping, in four threads.
#include "tests/victims/victim.h"

#define HEAP_PAGES 2000
static unsigned char* heap;
static const unsigned char* at;
static int trips;

static void handler(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)context;
  uintptr_t address = (uintptr_t)info->si_addr;
  if (address < (uintptr_t)heap || address >= (uintptr_t)heap + HEAP_PAGES * PAGE) _exit(71);
  __atomic_add_fetch(&trips, 1, __ATOMIC_SEQ_CST);
  mprotect((void*)(address / PAGE * PAGE), PAGE, PROT_READ | PROT_WRITE);
}

static void* mutator(void* argument) {
  size_t me = (size_t)argument;
  for (size_t i = me * HEAP_PAGES / 4; i < (me + 1) * HEAP_PAGES / 4; ++i) {
    size_t offset = i * 6000;
    CHECK(is_data(at + offset, offset, 6000));
    memcpy(heap + i * PAGE, at + offset, PAGE);
    CHECK(is_data(heap + i * PAGE, offset, PAGE));
  }
  return NULL;
}

int main(int argc, char** argv) {
  CHECK(argc > 1);
  at = map_data(argv[1]);
  heap = mmap(NULL, HEAP_PAGES * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
  CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
  pthread_t threads[4];
  for (size_t i = 0; i < 4; ++i) CHECK(pthread_create(&threads[i], NULL, mutator, (void*)i) == 0);
  for (size_t i = 0; i < 4; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  printf("%d trips\n", trips);
  return 0;
}
