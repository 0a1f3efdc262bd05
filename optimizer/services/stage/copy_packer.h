// Writes copies into packs (optimizer/packs), from which later runs fetch them. Core thread only;
// packs are opened and written on threads of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "optimizer/io/executor.h"
#include "optimizer/io/mailbox.h"
#include "optimizer/packs/pack_store.h"
#include "optimizer/stage/stage_copy.h"

namespace sluice::optimizer {

class CopyPacker {
 public:
  explicit CopyPacker(std::shared_ptr<Mailbox> mailbox);

  // From now on copies are packed in `folder`, in at most `bytes`, once packs that were released
  // there are closed. The first call decides. If the folder cannot be used, one warning gives the
  // reason and the call has no effect.
  void use(const std::string& folder, uint64_t bytes);
  // No session is left: copies to be packed are written, and the folder is released to other
  // optimizers, as this one may never be used again. Waits for no thread.
  void release();
  // Packs the copy later, unless no packs are in use or more than `most` bytes would wait for it.
  void pack(const std::string& path, std::shared_ptr<CopyToPack> copy, uint64_t most);
  // null: none in use. Wherever they are released last, they are not closed on the core thread.
  const std::shared_ptr<PackStore>& packs() const { return packs_; }
  // The present or last state of the packs; nullopt: none were requested.
  std::optional<PackStore::View> view() const;

 private:
  struct Request {
    std::string folder;
    uint64_t bytes = 0;
  };

  void open(const Request& request);
  void failed(uint64_t turn, const std::string& reason);
  void closed(const std::string& folder);

  const std::shared_ptr<Mailbox> mailbox_;
  const std::shared_ptr<Executor> executor_;  // by folder: one that hangs holds up no other
  std::optional<Request> requested_;          // by the sessions that there are
  uint64_t turn_ = 0;                         // counts release()
  std::set<std::string> held_;  // folders of packs that are being opened, open, or to be closed
  std::shared_ptr<PackStore> packs_;
  std::shared_ptr<uint64_t> waiting_;  // bytes of copies queued for packing or in it
  std::optional<PackStore::View> before_;
};

}  // namespace sluice::optimizer
