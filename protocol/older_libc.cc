// libstdc++, which the programs carry in themselves, asks for arc4random where the building
// machine's C library has it (2.36). Found here, it does not make the programs need that one:
// they run wherever the library loads. tests/integration/portable holds it.
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" __attribute__((visibility("hidden"))) uint32_t arc4random() noexcept {
  uint32_t word = 0;
  // So few bytes come whole, or not at all where a filter forbids the call.
  if (getrandom(&word, sizeof word, 0) != static_cast<ssize_t>(sizeof word)) abort();
  return word;
}
