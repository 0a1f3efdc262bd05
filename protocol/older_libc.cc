// libstdc++, which is linked statically, uses arc4random where the building machine's C library has
// it (2.36). With this definition the programs do not need so new a C library: they run wherever
// the library loads. tests/integration/portable.py checks it.
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" __attribute__((visibility("hidden"))) uint32_t arc4random() noexcept {
  uint32_t word = 0;
  // getrandom() delivers so few bytes completely, or fails where a filter forbids the call.
  if (getrandom(&word, sizeof word, 0) != static_cast<ssize_t>(sizeof word)) abort();
  return word;
}
