#include "preload/data/left_alone.h"

#include <atomic>
#include <cstdio>
#include <cstring>

#include "preload/base/settings.h"
#include "preload/base/start_page.h"
#include "preload/base/sys.h"
#include "preload/data/datasets.h"
#include "preload/session/events.h"

namespace sluice::preload {
namespace {

constexpr off_t kSmallest = 64 << 10;  // bytes
constexpr uint32_t kKinds = 16;        // the last one is for all endings without an entry
constexpr uint32_t kKnown = 4096;      // files that are distinguished, power of two
constexpr uint64_t kKindMask = 31;     // of a word of `known`
constexpr size_t kLongest = 7;         // bytes of an ending

struct Kind {
  std::atomic<uint64_t> ending;  // its bytes; 0: free, or no ending
  std::atomic<uint64_t> files, size, largest, read;
};

struct Table {
  Kind kinds[kKinds];
  std::atomic<uint64_t> known[kKnown];  // hashes of files and their kinds
  std::atomic<bool> matched;            // by SLUICE_DATASET
};

constinit Table g_own = {};
SLUICE_TOUCHED_AT_START constinit std::atomic<Table*> g_table{&g_own};
// Whether the table has any entry: read before a fork.
SLUICE_TOUCHED_AT_START constinit std::atomic<bool> g_used{false};

// Endings of files that belong to programs.
constexpr const char* kNoData[] = {"so", "py",  "pyc", "pyd", "o",  "a",   "h",  "hpp", "c",
                                   "cc", "cpp", "js",  "jar", "rb", "pl",  "sh", "mo",  "log",
                                   "md", "gch", "rs",  "go",  "ts", "pem", "whl"};
constexpr const char* kNotTheJobs[] = {"/usr/", "/lib",  "/proc/", "/sys/",
                                       "/dev/", "/etc/", "/bin/",  "/opt/"};

const char* ending_of(const char* path) {
  const char* name = strrchr(path, '/');
  name = name == nullptr ? path : name + 1;
  const char* dot = strrchr(name, '.');
  return dot == nullptr || dot == name || strlen(dot + 1) > kLongest ? "" : dot + 1;
}

uint64_t packed(const char* ending) {
  uint64_t word = 0;
  memcpy(&word, ending, strlen(ending));
  return word;
}

uint32_t kind_of(Table& table, uint64_t ending) {
  for (uint32_t i = 1; i + 1 < kKinds; ++i) {
    uint64_t found = table.kinds[i].ending.load(std::memory_order_relaxed);
    if (found == 0 && ending != 0 &&
        table.kinds[i].ending.compare_exchange_strong(found, ending, std::memory_order_relaxed)) {
      return i;
    }
    if (found == ending && ending != 0) return i;
  }
  return kKinds - 1;
}

// The table's word for the file: its hash, with the kind in the lowest bits. nullptr: no room.
std::atomic<uint64_t>* known_file(Table& table, const struct stat& about, uint64_t* hash) {
  const uint64_t mixed =
      (about.st_dev * 0x9e3779b97f4a7c15ULL ^ about.st_ino) * 0xff51afd7ed558ccdULL;
  *hash = (mixed | uint64_t{1} << 63) & ~kKindMask;
  for (uint32_t i = 0; i < 16; ++i) {
    std::atomic<uint64_t>& place = table.known[((mixed >> 32) + i) % kKnown];
    uint64_t found = place.load(std::memory_order_relaxed);
    if (found == 0 && place.compare_exchange_strong(found, *hash, std::memory_order_relaxed)) {
      return &place;
    }
    if ((found & ~kKindMask) == *hash) return &place;
  }
  return nullptr;
}

bool worth_counting(const char* path) {
  for (const char* folder : kNotTheJobs) {
    if (strncmp(path, folder, strlen(folder)) == 0) return false;
  }
  if (strstr(path, ".so.") != nullptr || strstr(path, "/.git/") != nullptr) return false;
  const char* ending = ending_of(path);
  for (const char* known : kNoData) {
    if (strcmp(ending, known) == 0) return false;
  }
  return true;
}

const char* given_dataset() {
  const char* text = g_settings.text[static_cast<size_t>(protocol::Option::kDataset)];
  return text != nullptr ? text : "";
}

}  // namespace

uint32_t left_alone_opened(int fd, const struct stat& about) {
  if (!S_ISREG(about.st_mode) || about.st_size < kSmallest) return 0;
  Table& table = *g_table.load(std::memory_order_acquire);
  uint64_t hash = 0;
  std::atomic<uint64_t>* known = known_file(table, about, &hash);
  const uint64_t word = known == nullptr ? hash : known->load(std::memory_order_relaxed);
  if ((word & kKindMask) != 0) return static_cast<uint32_t>(word & kKindMask) % kKinds;
  char path[1024], link[32];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const long length = sys::call(SYS_readlink, sys::word(link), sys::word(path), sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = '\0';
  const uint32_t number = worth_counting(path) ? kind_of(table, packed(ending_of(path))) : 0;
  if (known == nullptr) return number;  // the table is full: the file is not counted
  uint64_t fresh = hash;
  // kKinds encodes kind 0: a 0 in the word means that the file was not examined yet.
  const uint64_t named = hash | (number == 0 ? kKinds : number);
  if (!known->compare_exchange_strong(fresh, named, std::memory_order_relaxed) || number == 0) {
    return number;
  }
  Kind& kind = table.kinds[number];
  const auto size = static_cast<uint64_t>(about.st_size);
  kind.files.fetch_add(1, std::memory_order_relaxed);
  kind.size.fetch_add(size, std::memory_order_relaxed);
  uint64_t largest = kind.largest.load(std::memory_order_relaxed);
  while (largest < size &&
         !kind.largest.compare_exchange_weak(largest, size, std::memory_order_relaxed)) {
  }
  g_used.store(true, std::memory_order_relaxed);
  g_something_to_report.store(true, std::memory_order_relaxed);
  return number;
}

void left_alone_read(uint32_t kind, uint64_t bytes) {
  if (kind == 0 || kind >= kKinds) return;
  g_table.load(std::memory_order_acquire)
      ->kinds[kind]
      .read.fetch_add(bytes, std::memory_order_relaxed);
}

void dataset_matched() {
  g_used.store(true, std::memory_order_relaxed);
  g_table.load(std::memory_order_acquire)->matched.store(true, std::memory_order_relaxed);
}

uint64_t left_alone_bytes() {
  uint64_t sum = 0;
  for (const Kind& kind : g_table.load(std::memory_order_acquire)->kinds) {
    sum += kind.read.load(std::memory_order_relaxed);
  }
  return sum;
}

void left_alone_text(char* out, size_t size) {
  out[0] = '\0';
  size_t used = 0;
  // The two kinds with the most bytes read.
  const Table& table = *g_table.load(std::memory_order_acquire);
  const Kind* most[2] = {};
  for (const Kind& kind : table.kinds) {
    const uint64_t read = kind.read.load(std::memory_order_relaxed);
    if (read == 0) continue;
    if (most[0] == nullptr || read > most[0]->read.load(std::memory_order_relaxed)) {
      most[1] = most[0];
      most[0] = &kind;
    } else if (most[1] == nullptr || read > most[1]->read.load(std::memory_order_relaxed)) {
      most[1] = &kind;
    }
  }
  for (const Kind* kind : most) {
    if (kind == nullptr) continue;
    char ending[8] = {};
    const uint64_t word = kind->ending.load(std::memory_order_relaxed);
    memcpy(ending, &word, sizeof word);
    const uint64_t files = kind->files.load(std::memory_order_relaxed);
    const bool big = kind->largest.load(std::memory_order_relaxed) >= kBigFile;
    const char* why = *given_dataset() != '\0' ? "not named by SLUICE_DATASET"
                      : big                    ? "opened in a way that is not followed"
                            : "too small to be followed unasked; SLUICE_DATASET=DIR takes them";
    const int length = snprintf(out + used, size - used, "%s%llu%s%s file%s of %.1f MB: %s",
                                used == 0 ? "" : "; ", static_cast<unsigned long long>(files),
                                word == 0 ? "" : " .", ending, files == 1 ? "" : "s",
                                static_cast<double>(kind->size.load(std::memory_order_relaxed)) /
                                    1e6 / static_cast<double>(files == 0 ? 1 : files),
                                why);
    if (length < 0 || static_cast<size_t>(length) >= size - used) break;
    used += static_cast<size_t>(length);
  }
}

bool dataset_unmatched() {
  const char* given = given_dataset();
  return *given != '\0' && strcmp(given, "auto") != 0 &&
         !g_table.load(std::memory_order_acquire)->matched.load(std::memory_order_relaxed);
}

size_t left_alone_size() { return sizeof(Table); }

void share_left_alone(void* shared) {
  if (g_used.load(std::memory_order_relaxed)) memcpy(shared, &g_own, sizeof g_own);
  g_table.store(static_cast<Table*>(shared), std::memory_order_release);
}

}  // namespace sluice::preload
