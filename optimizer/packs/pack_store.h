// The packs of one user in a folder on a fast disk (SLUICE_CACHE_DIR): what was fetched from slow
// storage is added, and later read from there, in this run and in later ones. One optimizer at a
// time has the folder.
//
// Everything blocks in the file system and is for the executor's threads; any number of them may
// call at a time once open() has returned. Memory: about 50 bytes a sample (pack_index.h), and some
// MiB for what is being built and for packs that are open. Nothing that is found is trusted: a
// sample's bytes are checked whenever they are copied.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "optimizer/packs/pack_file.h"
#include "optimizer/packs/pack_index.h"
#include "protocol/pack.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {

class PackStore {
 public:
  static constexpr uint64_t kMostSample = 64 << 20;  // bytes; larger ones are not packed

  struct Settings {
    std::string base;                    // an existing folder; packs are in BASE/sluice-packs-UID
    uint64_t most_bytes = 0;             // of all packs
    uint64_t pack_bytes = 4 << 20;       // of one, about; from 1 to 32 MiB
    uint64_t most_samples = 8ULL << 20;  // of use in all packs, which bounds the memory
    size_t most_open = 1024;             // packs at a time
    unsigned least_free_percent = 5;     // of the file system; with less nothing is added
    // Takes one line, at most two in a store's life: what was removed by open(), and why nothing is
    // added any more. Called by any thread, without locks.
    std::function<void(const std::string&)> say;
  };

  // A sample that is there. Its pack stays open, even if that is removed meanwhile.
  struct Found {
    std::shared_ptr<const PackFile> file;  // nullptr: it is not there
    const protocol::PackEntry* entry = nullptr;
    uint32_t pack = 0;
    explicit operator bool() const { return file != nullptr; }
  };

  struct View {
    uint64_t packs = 0, samples = 0;       // samples of use
    uint64_t bytes = 0, useful_bytes = 0;  // of whole packs; of samples of use
    uint64_t written_bytes = 0;            // in this run, of whole packs
    uint64_t read_samples = 0, read_bytes = 0;
    uint64_t damaged_packs = 0;  // with those that open() removed
    bool adding = false;         // whether a sample would be added now
  };

  PackStore();
  PackStore(const PackStore&) = delete;
  PackStore& operator=(const PackStore&) = delete;
  // What is being built is lost; see flush().
  ~PackStore();

  // Takes the folder and reads the index of every pack in it. Packs that are damaged or no packs
  // are removed, and so are the oldest beyond the settings' bounds. Called once, before anything
  // else. False: *reason is one line, and the store is not to be used.
  bool open(const Settings& settings, std::string* reason);

  // The sample in that version of its original. One that is there in another version is removed.
  // What is still being built is not found.
  Found find(const PackKey& key, const protocol::PackVersion& version);

  // Writes the sample's bytes to `to`, at its offset. 0, or an errno: what was written is of no use
  // then. EBADMSG: damaged() comes next.
  int copy(const Found& found, int to);

  // The pack of `found` is removed, and all its samples are as if they had never been packed.
  void damaged(const Found& found);

  // Takes the bytes [0, key.length) of `from`, a copy of the sample. True: the sample will be found
  // once its pack is written, or is there already. False: it is too large or invalid, `from`
  // is shorter, or nothing is added any more (no room or a failing disk); what is there stays.
  bool add(const PackKey& key, const protocol::PackVersion& version, int from);

  // The sample is not wanted any more, in whatever version. That is remembered for this run: a
  // later one finds it where its pack has stayed, by its version as always.
  void drop(const PackKey& key);

  // Writes what is being built if it makes a pack of at least 1 MiB. Less waits for more to come,
  // and is lost at the end: it costs little to fetch again, and a small file from every run would
  // in time be many.
  void flush();

  View view();

 private:
  // A pack in memory.
  struct Batch {
    PackBuilder builder;
    std::unordered_map<uint64_t, uint32_t> wanted;  // hash and entry; what was dropped is not here
  };
  struct Open {
    uint32_t pack;
    std::shared_ptr<const PackFile> file;
  };
  // For after the lock is released: packs to remove, and files to close before.
  struct Waste {
    std::vector<uint32_t> packs;
    std::vector<std::shared_ptr<const PackFile>> files;
  };

  // pack_load.cc
  void load(const std::vector<uint32_t>& numbers);
  bool load_one(uint32_t number, std::string* problem);
  bool take_folder(const std::string& base, std::string* reason);

  uint64_t hash_of(const PackKey& key, bool whole) const;
  uint64_t hash_of(const PackKey& key, const protocol::PackVersion& version) const;
  void say(const std::string& line) const;

  OpenedPack open_pack(uint32_t number);
  bool will_be_there(uint64_t hash, const PackKey& key, const protocol::PackVersion& version);
  bool has_room(const PackKey& key);
  bool append(uint64_t hash, const PackKey& key, const protocol::PackVersion& version,
              std::vector<char> bytes, const PackIndex::Place* moved);
  bool write(const std::shared_ptr<Batch>& batch);
  void repack();
  void remove_pack(uint32_t number, bool is_damaged);
  void stop_adding(const std::string& why);
  void discard(Waste waste);

  // These want the lock.
  std::string why_full(const PackKey& key) const;  // empty: there is room for one more
  void publish(const Batch& batch, uint32_t number);
  Waste take_waste();
  void close_pack(uint32_t number, Waste* waste);

  // Constant once open() has returned.
  Settings settings_;
  std::string path_;
  UniqueFd folder_, lock_;
  uint64_t secret_[2];

  std::mutex mutex_;  // of all below; never held while a file is touched
  PackIndex index_;
  std::list<Open> open_;  // the one that was used last comes first
  std::unordered_map<uint32_t, std::list<Open>::iterator> open_at_;  // by number
  uint64_t open_heads_ = 0;                                          // bytes of their indices
  std::shared_ptr<Batch> building_;            // null until something is added
  std::list<std::shared_ptr<Batch>> batches_;  // that one, and those that are being written
  uint64_t next_number_ = 0;
  bool failed_ = false;  // writing; nothing is added until the next run
  uint64_t written_bytes_ = 0, damaged_packs_ = 0;

  std::atomic<uint64_t> read_samples_ = 0, read_bytes_ = 0;
  std::atomic<bool> room_ = true;   // at the last check
  std::atomic<bool> said_ = false;  // why nothing is added
};

}  // namespace sluice::optimizer
