#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "cli/commands.h"
#include "cli/program.h"
#include "cli/run_settings.h"
#include "cli/text.h"
#include "optimizer/packs/pack_file.h"
#include "optimizer/packs/pack_folder.h"

namespace sluice::cli {
namespace {

using optimizer::OpenedPack;
using optimizer::pack_name;
using optimizer::PackFile;

struct Folder {
  UniqueFd fd;
  optimizer::PackNames names;
};

// Returns 0, or the exit status after an error message. Without packs, `folder` has no descriptor.
int open_folder(const PacksOptions& options, Folder* folder) {
  std::string problem;
  const std::string base = chosen_cache_dir(options.folder, &problem);
  if (base.empty()) {
    return failed(kExitUsage, one_line((options.chunks ? "chunks: " : "packs: ") + problem));
  }
  struct stat about {};
  if (stat(base.c_str(), &about) != 0) {
    return failed(kExitProblem, one_line(base + ": " + strerror(errno)));
  }
  int error = 0;
  const std::string path =
      options.chunks ? optimizer::chunks_folder(base) : optimizer::packs_folder(base);
  folder->fd = optimizer::open_packs_folder(path, false, &error, &problem);
  if (!folder->fd && error != ENOENT) return failed(kExitProblem, one_line(problem));
  if (!folder->fd) return 0;
  error = optimizer::list_packs(folder->fd.get(), &folder->names);
  return error == 0 ? 0 : failed(kExitProblem, one_line(base + ": " + strerror(error)));
}

struct Sum {
  uint64_t packs = 0, samples = 0, bytes = 0;

  void add(const PackFile& pack) {
    ++packs;
    samples += pack.entries().size();
    bytes += pack.bytes();
  }
};

// Checks the samples of a pack with a valid index. Returns an errno with *reason, or 0.
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

int verify_packs(const PacksOptions& options) {
  Folder folder;
  if (const int status = open_folder(options, &folder)) return status;
  Sum good;
  uint64_t bad = 0, removed = 0;
  for (const uint32_t number : folder.names.packs) {
    const std::string name = pack_name(number);
    OpenedPack opened = PackFile::open(folder.fd.get(), name);
    if (opened.file != nullptr) opened.error = check_samples(*opened.file, &opened.reason);
    if (opened.error == 0) good.add(*opened.file);
    if (opened.error == 0 || opened.error == ENOENT) continue;
    ++bad;
    const bool gone = options.remove && opened.error == EBADMSG &&
                      unlinkat(folder.fd.get(), name.c_str(), 0) == 0;
    if (gone) ++removed;
    fmt::print("{}: {}{}\n", name, opened.reason, gone ? "; removed" : "");
  }
  const char* const what = options.chunks ? "chunks" : "packs";
  fmt::print("good {}: {}, with {} samples, {}; bad {}: {}{}\n", what, good.packs, good.samples,
             format_bytes(static_cast<double>(good.bytes)), what, bad,
             options.remove ? fmt::format(", {} removed", removed) : "");
  return finish(bad == 0);
}

int print_packs(const PacksOptions& options) {
  Folder folder;
  if (const int status = open_folder(options, &folder)) return status;
  Sum all;
  bool good = true;
  std::vector<std::vector<std::string>> rows = {
      {options.chunks ? "chunk" : "pack", "samples", "bytes", ""}};
  for (const uint32_t number : folder.names.packs) {
    const std::string name = pack_name(number);
    const OpenedPack opened = PackFile::open(folder.fd.get(), name);
    if (opened.file != nullptr) {
      all.add(*opened.file);
      rows.push_back({name, fmt::format("{}", opened.file->entries().size()),
                      fmt::format("{}", opened.file->bytes()), ""});
    } else if (opened.error != ENOENT) {
      good = false;
      rows.push_back({name, "-", "-", opened.reason});
    }
  }
  rows.push_back({fmt::format("all {}", all.packs), fmt::format("{}", all.samples),
                  fmt::format("{}", all.bytes), ""});
  fmt::print("{}", columns(rows, "lrrl"));
  return finish(good);
}

}  // namespace sluice::cli
