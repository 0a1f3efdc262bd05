// Writes copies into packs (optimizer/packs), from which later runs fetch them. Core thread only;
// packs are opened and written on threads of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "optimizer/io/executor.h"
#include "optimizer/io/mailbox.h"
#include "optimizer/packs/pack_store.h"
#include "optimizer/stage/stage_copy.h"

namespace sluice::optimizer {

class CopyPacker {
 public:
  explicit CopyPacker(std::shared_ptr<Mailbox> mailbox);

  // From now on copies are packed in `folder`, in at most `bytes`. The first call decides. If the
  // folder cannot be used, one warning gives the reason and the call has no effect.
  void use(const std::string& folder, uint64_t bytes);
  // No session is left: copies to be packed are written, and the folder is released until the next
  // use().
  void release();
  // Packs the copy later, unless no packs are in use or more than `most` bytes would wait for it.
  void pack(const std::string& path, std::shared_ptr<CopyToPack> copy, uint64_t most);
  const std::shared_ptr<PackStore>& packs() const { return packs_; }  // null: none in use
  // The present or last state of the packs; nullopt: none were requested.
  std::optional<PackStore::View> view() const;

 private:
  const std::shared_ptr<Mailbox> mailbox_;
  std::shared_ptr<PackStore> packs_;
  uint64_t waiting_ = 0;  // bytes of copies queued for packing or in it
  bool requested_ = false, releasing_ = false;
  std::optional<PackStore::View> before_;
  Executor executor_;
};

}  // namespace sluice::optimizer
