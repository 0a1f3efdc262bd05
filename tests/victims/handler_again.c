// What torch's DataLoader workers do on a fault: their handler reports, restores the default
// action and raises the signal again (or returns, and the instruction faults again).
#include "tests/victims/victim.h"

static bool by_raise;
static const char* path;

static void handler(int number, siginfo_t* info, void* context) {
  (void)info;
  (void)context;
  static const char text[] = "worker: fault\n";
  CHECK(write(1, text, sizeof text - 1) > 0);
  struct sigaction action = {.sa_handler = SIG_DFL};
  CHECK(sigaction(number, &action, NULL) == 0);
  if (by_raise) raise(number);
}

static void worker(void* argument) {
  int number = (int)(intptr_t)argument;
  struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_NODEFER};
  CHECK(sigaction(number, &action, NULL) == 0);
  const unsigned char* at = map_data(path);
  CHECK(is_data(at, 0, DATA_SIZE));
  if (number == SIGSEGV) {
    *(volatile char*)8 = 1;
  } else {
    int fd = open("empty", O_RDWR | O_CREAT, 0600);
    *(volatile char*)mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, fd, 0) = 1;
  }
}

int main(int argc, char** argv) {
  CHECK(argc > 1);
  path = argv[1];
  in_child("segv, return", worker, (void*)SIGSEGV);
  in_child("bus, return", worker, (void*)SIGBUS);
  by_raise = true;
  in_child("segv, raise", worker, (void*)SIGSEGV);
  in_child("bus, raise", worker, (void*)SIGBUS);
  return 0;
}
