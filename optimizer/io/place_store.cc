#include "optimizer/io/place_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include "protocol/unique_fd.h"

namespace sluice::optimizer {

using policy::place_file_name;
using policy::PlaceList;
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostOfOne = 256ULL << 20;       // bytes
constexpr auto kAbandoned = std::chrono::hours(1);  // writing a file never takes this long
constexpr const char* kSuffix = ".places";

std::string error_text(const std::string& what) { return what + ": " + strerror(errno); }

bool read_all(int fd, std::vector<uint8_t>* bytes) {
  for (size_t done = 0; done < bytes->size();) {
    const ssize_t got = read(fd, bytes->data() + done, bytes->size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

bool write_all(int fd, const std::vector<uint8_t>& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t wrote = write(fd, bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    done += static_cast<size_t>(wrote);
  }
  return true;
}

bool ends_with(const std::string& name, const std::string& end) {
  return name.size() > end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

std::optional<PlaceList> PlaceStore::load(const std::string& name, uint64_t samples,
                                          std::string* problem) const {
  problem->clear();
  const std::string path = folder + "/" + place_file_name(name, samples);
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) {
    if (errno != ENOENT && errno != ENOTDIR) *problem = error_text(path);
    return std::nullopt;
  }
  struct stat about {};
  if (fstat(fd.get(), &about) != 0 || !S_ISREG(about.st_mode) || about.st_uid != geteuid() ||
      static_cast<uint64_t>(about.st_size) > kMostOfOne) {
    *problem = path + ": not a file of ours";
    return std::nullopt;
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(about.st_size));
  if (!read_all(fd.get(), &bytes)) {
    *problem = error_text(path);
    return std::nullopt;
  }
  PlaceList places;
  if (!places.decode(bytes, problem)) {
    *problem = path + ": " + *problem + ", removed";
    unlink(path.c_str());
    return std::nullopt;
  }
  if (places.name != name || places.samples != samples) return std::nullopt;
  futimens(fd.get(), nullptr);  // the least recently used are removed first
  return places;
}

bool PlaceStore::make_folder(std::string* problem) const {
  std::error_code error;
  const fs::path above = fs::path(folder).parent_path();
  // A user's cache folder is made where it lacks, but no home: the user has none.
  if (above.filename() == ".cache" && !fs::exists(above.parent_path(), error)) {
    *problem = above.parent_path().string() + ": no such folder";
    return false;
  }
  fs::create_directories(above, error);
  if (mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return true;
  *problem = error_text(folder);
  return false;
}

bool PlaceStore::save(const PlaceList& places, std::string* problem) const {
  const std::vector<uint8_t> bytes = places.encode();
  if (bytes.size() > kMostOfOne) {
    *problem = "too much was learned of " + places.name + " to be stored";
    return false;
  }
  if (!make_folder(problem)) return false;
  const std::string path = folder + "/" + place_file_name(places.name, places.samples);
  std::string temporary = path + "~XXXXXX";
  const UniqueFd fd(mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) {
    *problem = error_text(folder);
    return false;
  }
  if (!write_all(fd.get(), bytes) || rename(temporary.c_str(), path.c_str()) != 0) {
    *problem = error_text(path);
    unlink(temporary.c_str());
    return false;
  }
  prune();
  return true;
}

// Errors are ignored: the next save tries again.
void PlaceStore::prune() const {
  struct Stored {
    fs::path path;
    fs::file_time_type time;
    uint64_t bytes;
  };
  std::vector<Stored> all;
  uint64_t sum = 0;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    std::error_code ignored;
    const fs::file_time_type time = at->last_write_time(ignored);
    if (ignored) continue;
    if (ends_with(name, kSuffix)) {
      all.push_back({at->path(), time, at->file_size(ignored)});
      sum += ignored ? 0 : all.back().bytes;
    } else if (name.find(std::string(kSuffix) + "~") != std::string::npos &&
               fs::file_time_type::clock::now() - time > kAbandoned) {
      fs::remove(at->path(), ignored);  // left by a killed optimizer
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Stored& a, const Stored& b) { return a.time < b.time; });
  for (size_t i = 0; i + 1 < all.size() && sum > most_bytes; ++i) {
    fs::remove(all[i].path, error);
    sum -= all[i].bytes;
  }
}

}  // namespace sluice::optimizer
