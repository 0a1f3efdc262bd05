// An allocator of the program's own, which opens a data file at its first call, as profilers do:
// whatever calls malloc from within open must not wait for itself.
#include "tests/victims/victim.h"

static unsigned char heap[64 << 20];
static size_t used;
static int depth, opened = -1;
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static void* allocate(size_t size) {
  pthread_mutex_lock(&lock);
  if (depth++ == 0 && opened < 0) opened = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  size_t at = (used + 31) & ~(size_t)15;
  used = at + size;
  --depth;
  pthread_mutex_unlock(&lock);
  if (used > sizeof heap) return NULL;
  memcpy(heap + at - 8, &size, 8);
  return heap + at;
}
void* malloc(size_t size) { return allocate(size); }
void free(void* block) { (void)block; }
void* calloc(size_t count, size_t size) { return allocate(count * size); }
void* realloc(void* block, size_t size) {
  void* bigger = allocate(size);
  size_t old = 0;
  if (block) memcpy(&old, (char*)block - 8, 8);
  if (block && bigger) memcpy(bigger, block, old < size ? old : size);
  return bigger;
}
void* aligned_alloc(size_t alignment, size_t size) {
  unsigned char* block = allocate(size + alignment);
  return block + (alignment - (uintptr_t)block % alignment) % alignment;
}

int main(int argc, char** argv) {
  CHECK(argc > 1);
  const unsigned char* at = map_data(argv[1]);
  CHECK(is_data(at, 0, DATA_SIZE));
  FILE* file = fopen(argv[1], "r");
  char* line = NULL;
  size_t size = 0;
  uint64_t digest = DIGEST_START;
  ssize_t got;
  for (int i = 0; i < 1000 && (got = getline(&line, &size, file)) > 0; ++i) {
    digest = digest_more(digest, line, (size_t)got);
  }
  printf("%016lx %d\n", digest, opened >= 0);
  return 0;
}
