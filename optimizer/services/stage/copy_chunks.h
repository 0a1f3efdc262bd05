// Chunks that were made ahead of time (optimizer/chunks/chunk_store.h), as copies are fetched from
// them. Core thread only; the folder is opened on a thread of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "optimizer/chunks/chunk_store.h"
#include "optimizer/io/executor.h"
#include "optimizer/io/mailbox.h"
#include "optimizer/stage/chunk_copy.h"
#include "policy/util/ids.h"

namespace sluice::optimizer {

class CopyChunks {
 public:
  explicit CopyChunks(std::shared_ptr<Mailbox> mailbox);

  enum class Wanted : uint8_t { kSurely, kIfAny };
  // Opens the chunks in `folder`, once; calls `ready` when that is done, or was. If there are none
  // that can be used store() stays null until release(), and one warning gives the reason where
  // they are surely wanted.
  void use(const std::string& folder, Wanted wanted, std::function<void()> ready);
  // Until when a job is to wait for the folder, whose file system may never answer; 0: it is not
  // being opened. After that late() says so, once.
  uint64_t deadline_ns() const { return state_ == State::kOpening ? deadline_ns_ : 0; }
  void late();
  // No session is left.
  void release();

  const std::shared_ptr<ChunkStore>& store() const { return store_; }  // null: there is none
  // How the file's copy is made from its chunk, which *read is to read: created unless it is that
  // chunk's already. nullptr: no chunk has the file, or it is another one than *read's.
  std::shared_ptr<const ChunkedCopy> find(const std::string& path,
                                          std::shared_ptr<ChunkRead>* read);
  // For so long a change on another host may go unnoticed.
  void set_stale(uint64_t ns) { stale_ns_ = ns; }
  // Compares all originals in the folders with what was packed, if that is of use for longer than
  // it takes; calls `done` then, or when that was done before. A listing that hangs delays it.
  void check(const std::vector<std::string>& folders, bool any_mount, std::function<void()> done);
  // Chunks decide the order of the dataset, from now on until no session is left: that copies of it
  // pay is not to be doubted by what its first samples cost.
  void supply(policy::DatasetId dataset) { supplied_.insert(dataset); }
  bool supplies(policy::DatasetId dataset) const { return supplied_.contains(dataset); }
  // Files have changed, or may have.
  void doubt(const std::string& path);
  void doubt_all();

  struct View {
    uint64_t chunks = 0, samples = 0, damaged = 0;  // in the folder; chunks that are damaged
    uint64_t reads = 0, read_bytes = 0;             // of whole chunks
  };
  const View& view() const { return view_; }

 private:
  enum class State : uint8_t { kNone, kOpening, kOpened };

  void opened(const std::string& folder, std::shared_ptr<ChunkStore> store,
              const std::string& reason);
  void warn_of_none();

  const std::shared_ptr<Mailbox> mailbox_;
  State state_ = State::kNone;
  uint64_t deadline_ns_ = 0;
  bool is_late_ = false;  // which was said
  uint64_t turn_ = 0;     // counts release(), so that what was opened before is not used
  std::shared_ptr<ChunkStore> store_;
  std::vector<std::function<void()>> waiting_;
  bool surely_ = false;      // wanted, by any
  std::string none_reason_;  // why there are none; empty once it was said
  uint32_t read_chunk_ = 0;  // that find() has named last
  uint64_t stale_ns_ = 0;
  std::set<std::string> checked_;  // folders
  std::set<policy::DatasetId> supplied_;
  View view_;
  Executor executor_;  // opens, and lists folders
};

}  // namespace sluice::optimizer
