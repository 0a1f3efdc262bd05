// How fast chunks of LCache's log are read, with all that a fetch does but its own write.
//
// read-chunks FOLDER CHUNKS SECONDS THREADS: writes a log of CHUNKS chunks of 4 MiB in FOLDER, each
// of samples of one size, and has THREADS threads read one chunk after the other, whole, with one
// request each, and compare the checksum of every sample, again and again for SECONDS. Prints one
// JSON object: bytes that were read, the seconds that took, and whether reads went past the page
// cache. It ends with 1 if a sample has other bytes than were written.
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "optimizer/chunks/log_files.h"
#include "optimizer/chunks/logged_copy.h"
#include "policy/util/random.h"

namespace {

using namespace sluice::optimizer;
using sluice::policy::LogRange;

constexpr uint64_t kChunk = 4 << 20, kSamples = 40, kSample = kChunk / kSamples;
constexpr uint32_t kLog = 0;

double now_s() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// By sample; empty: it could not be written.
std::vector<uint64_t> write_log(LogFiles* files, uint64_t chunks) {
  sluice::Random random(sluice::mixed(1));
  std::vector<uint64_t> checksums;
  std::vector<std::byte> bytes(kSample);
  for (uint64_t sample = 0; sample < chunks * kSamples; ++sample) {
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
    const uint64_t offset = sample / kSamples * kChunk + sample % kSamples * kSample;
    if (files->write(kLog, offset, bytes) != 0) return {};
    checksums.push_back(LogFiles::checksum(bytes));
  }
  return checksums;
}

bool is_right(const std::shared_ptr<const LogFiles>& files, const std::vector<uint64_t>& checksums,
              uint64_t chunk) {
  LogRead read(files, kLog, {LogRange{chunk * kChunk, kChunk}});
  for (uint64_t sample = 0; sample < kSamples; ++sample) {
    const auto bytes = read.bytes({chunk * kChunk + sample * kSample, kSample});
    if (LogFiles::checksum(bytes) != checksums[chunk * kSamples + sample]) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: read-chunks FOLDER CHUNKS SECONDS THREADS\n");
    return 2;
  }
  const uint64_t chunks = strtoul(argv[2], nullptr, 10);
  const double seconds = strtod(argv[3], nullptr);
  std::string reason;
  std::shared_ptr<LogFiles> files = LogFiles::open(argv[1], &reason);
  if (files == nullptr) {
    fprintf(stderr, "read-chunks: %s\n", reason.c_str());
    return 1;
  }
  const std::vector<uint64_t> checksums = write_log(files.get(), chunks);
  if (checksums.size() != chunks * kSamples || syncfs(files->descriptor(kLog)) != 0) {
    fprintf(stderr, "read-chunks: the log cannot be written\n");
    return 1;
  }
  std::atomic<uint64_t> next{0}, done{0};
  std::atomic<bool> good{true};
  const double began = now_s();
  std::vector<std::thread> threads;
  for (unsigned long i = 0; i < strtoul(argv[4], nullptr, 10); ++i) {
    threads.emplace_back([&] {
      while (good && now_s() - began < seconds) {
        if (!is_right(files, checksums, next++ % chunks)) good = false;
        ++done;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  printf("{\"bytes\": %llu, \"seconds\": %.3f, \"direct\": %s}\n",
         static_cast<unsigned long long>(done) * kChunk, now_s() - began,
         files->is_direct() ? "true" : "false");
  if (!good) fprintf(stderr, "read-chunks: a sample has other bytes than were written\n");
  return good ? 0 : 1;
}
