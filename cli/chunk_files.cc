// `sluice chunks ls` and `verify`.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/program.h"
#include "cli/run_settings.h"
#include "cli/text.h"
#include "optimizer/packs/pack_file.h"
#include "optimizer/packs/pack_folder.h"
#include "protocol/unique_fd.h"

namespace sluice::cli {
namespace {

using optimizer::OpenedPack;
using optimizer::pack_name;
using optimizer::PackFile;

// A chunk of one of the folders below a cache folder.
struct ChunkFile {
  int folder;         // its descriptor, of Found
  std::string name;   // in it
  std::string shown;  // below the cache folder
};

struct Found {
  std::vector<UniqueFd> folders;
  std::vector<ChunkFile> files;
};

// Appends the chunks below `path`, if it exists. Returns 0, or the exit status after a message.
int add_folder(const std::string& path, Found* found) {
  int error = 0;
  std::string problem;
  UniqueFd folder = optimizer::open_packs_folder(path, false, &error, &problem);
  if (!folder && error == ENOENT) return 0;
  if (!folder) return failed(kExitProblem, one_line(problem));
  optimizer::PackNames names;
  error = optimizer::list_packs(folder.get(), &names);
  if (error != 0) return failed(kExitProblem, one_line(path + ": " + strerror(error)));
  const std::string base = path.substr(path.rfind('/') + 1) + "/";
  for (const uint32_t number : names.packs) {
    found->files.push_back({folder.get(), pack_name(number), base + pack_name(number)});
  }
  found->folders.push_back(std::move(folder));
  return 0;
}

// Of both kinds. Returns 0, or the exit status after a message.
int find_chunks(const ChunkFilesOptions& options, Found* found) {
  std::string problem;
  const std::string base = chosen_cache_dir(options.folder, &problem);
  if (base.empty()) return failed(kExitUsage, one_line("chunks: " + problem));
  struct stat about {};
  if (stat(base.c_str(), &about) != 0) {
    return failed(kExitProblem, one_line(base + ": " + strerror(errno)));
  }
  for (const std::string& path : {optimizer::chunks_folder(base), optimizer::packs_folder(base)}) {
    if (const int status = add_folder(path, found)) return status;
  }
  return 0;
}

struct Sum {
  uint64_t chunks = 0, samples = 0, bytes = 0;

  void add(const PackFile& pack) {
    ++chunks;
    samples += pack.entries().size();
    bytes += pack.bytes();
  }
};

// Checks the samples of a chunk with a valid index. Returns an errno with *reason, or 0.
int check_samples(const PackFile& pack, std::string* reason) {
  for (const protocol::PackEntry& entry : pack.entries()) {
    const int error = pack.check(entry);
    if (error == 0) continue;
    const optimizer::PackKey key = pack.key(entry);
    *reason = fmt::format("bytes {} to {} of {}: {}", key.offset, key.offset + key.length,
                          one_line(key.path), error == EBADMSG ? "damaged" : strerror(error));
    return error;
  }
  return 0;
}

int finish(bool good) { return fflush(stdout) == 0 && good ? 0 : kExitProblem; }

}  // namespace

int verify_chunks(const ChunkFilesOptions& options) {
  Found found;
  if (const int status = find_chunks(options, &found)) return status;
  Sum good;
  uint64_t bad = 0, removed = 0;
  for (const ChunkFile& file : found.files) {
    OpenedPack opened = PackFile::open(file.folder, file.name);
    if (opened.file != nullptr) opened.error = check_samples(*opened.file, &opened.reason);
    if (opened.error == 0) good.add(*opened.file);
    if (opened.error == 0 || opened.error == ENOENT) continue;
    ++bad;
    const bool gone = options.remove && opened.error == EBADMSG &&
                      unlinkat(file.folder, file.name.c_str(), 0) == 0;
    if (gone) ++removed;
    fmt::print("{}: {}{}\n", file.shown, opened.reason, gone ? "; removed" : "");
  }
  fmt::print("good chunks: {}, with {} samples, {}; bad chunks: {}{}\n", good.chunks, good.samples,
             format_bytes(static_cast<double>(good.bytes)), bad,
             options.remove ? fmt::format(", {} removed", removed) : "");
  return finish(bad == 0);
}

int print_chunks(const ChunkFilesOptions& options) {
  Found found;
  if (const int status = find_chunks(options, &found)) return status;
  Sum all;
  bool good = true;
  std::vector<std::vector<std::string>> rows = {{"chunk", "samples", "bytes", ""}};
  for (const ChunkFile& file : found.files) {
    const OpenedPack opened = PackFile::open(file.folder, file.name);
    if (opened.file != nullptr) {
      all.add(*opened.file);
      rows.push_back({file.shown, fmt::format("{}", opened.file->entries().size()),
                      fmt::format("{}", opened.file->bytes()), ""});
    } else if (opened.error != ENOENT) {
      good = false;
      rows.push_back({file.shown, "-", "-", opened.reason});
    }
  }
  rows.push_back({fmt::format("all {}", all.chunks), fmt::format("{}", all.samples),
                  fmt::format("{}", all.bytes), ""});
  fmt::print("{}", columns(rows, "lrrl"));
  return finish(good);
}

}  // namespace sluice::cli
