// dlopen with RTLD_DEEPBIND of a plugin that opens, maps and reads; then the program does so too:
// deepbind ... polite, or signal where the plugin also resets SIGSEGV.
#include <dlfcn.h>

#include "tests/victims/plugin.h"
#include "tests/victims/victim.h"

int main(int argc, char** argv) {
  CHECK(argc > 4);
  char where[4096];
  ssize_t size = readlink("/proc/self/exe", where, sizeof where - 40);
  CHECK(size > 0);
  strcpy(where + size, "-plugin.so");
  const unsigned char* at = map_data(argv[1]);
  CHECK(is_data(at, 0, DATA_SIZE / 2));
  for (int i = 0; i < 3; ++i) {
    void* plugin = dlopen(where, RTLD_NOW | (i == 1 ? 0 : RTLD_DEEPBIND));
    if (plugin == NULL) fprintf(stderr, "%s\n", dlerror());
    CHECK(plugin != NULL);
    uint64_t (*digest)(const char*, int) =
        (uint64_t(*)(const char*, int))dlsym(plugin, "plugin_digest");
    CHECK(digest != NULL);
    printf("%016lx\n", digest(argv[1], !strcmp(argv[4], "signal")));
    fflush(stdout);
    // The program's own mapping must do whatever the plugin did behind everybody's back.
    CHECK(is_data(at, 0, DATA_SIZE));
    CHECK(dlclose(plugin) == 0);
  }
  return 0;
}
