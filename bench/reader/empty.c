// What any preloaded library costs: an object that needs libc and does nothing.
#include <unistd.h>

int sluice_bench_empty(void) { return getpid(); }
