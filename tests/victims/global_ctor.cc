// A C++ program whose global object opens and reads the dataset before main, throws and catches
// exceptions around hooked calls, and reads with iostreams.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

uint64_t digest_of(const unsigned char* at, size_t size) {
  uint64_t digest = 14695981039346656037ULL;
  for (size_t i = 0; i < size; ++i) digest = (digest ^ at[i]) * 1099511628211ULL;
  return digest;
}

struct Mapped {
  explicit Mapped(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY);
    if (fd < 0) throw std::runtime_error("no " + path);
    struct stat info {};
    fstat(fd, &info);
    size = static_cast<size_t>(info.st_size);
    at = static_cast<unsigned char*>(mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0));
    close(fd);
  }
  ~Mapped() { munmap(at, size); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  unsigned char* at = nullptr;
  size_t size = 0;
};

std::string first_argument() {
  std::ifstream file("/proc/self/cmdline");
  std::stringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  const size_t start = all.find('\0') + 1;
  return all.substr(start, all.find('\0', start) - start);
}

const std::string path = first_argument();
const Mapped global(path);
const uint64_t before_main = digest_of(global.at, global.size);

}  // namespace

int main() {
  std::printf("%016lx\n", before_main);
  for (int i = 0; i < 100; ++i) {
    try {
      Mapped none("/no/such/file");
    } catch (const std::runtime_error& error) {
      if (i == 0) std::puts(error.what());
    }
  }
  std::ifstream stream(path, std::ios::binary);
  std::vector<char> all((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  std::printf("%zu %016lx\n", all.size(),
              digest_of(reinterpret_cast<unsigned char*>(all.data()), all.size()));
  std::vector<std::thread> threads;
  std::vector<uint64_t> digests(6);
  for (size_t i = 0; i < 6; ++i) {
    threads.emplace_back([&digests, i] {
      const Mapped own(path);
      digests[i] = digest_of(own.at + i, own.size - 2 * i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const uint64_t digest : digests) std::printf("%016lx\n", digest);
  std::cout.write(reinterpret_cast<char*>(global.at + 65536 * 3 - 10), 200000) << std::endl;
  return 0;
}
