#include "optimizer/services/stage/copy_chunks.h"

#include <utility>

#include "optimizer/io/clock.h"
#include "optimizer/io/log.h"

namespace sluice::optimizer {
namespace {

constexpr unsigned kListings = 8;  // at a time
// A job waits so long for the folder, less than for a busy optimizer: then its epoch is in its own
// order, and the next one asks again.
constexpr uint64_t kOpenNs = 2 * kSecond;

}  // namespace

CopyChunks::CopyChunks(std::shared_ptr<Mailbox> mailbox)
    : mailbox_(std::move(mailbox)), executor_(kListings, kListings) {}

void CopyChunks::use(const std::string& folder, Wanted wanted, std::function<void()> ready) {
  surely_ |= wanted == Wanted::kSurely;
  if (state_ == State::kOpened) {
    warn_of_none();
    ready();
    return;
  }
  waiting_.push_back(std::move(ready));
  if (std::exchange(state_, State::kOpening) == State::kOpening) return;
  deadline_ns_ = now_ns() + kOpenNs;
  is_late_ = false;
  executor_.run(mount_key(folder), [this, folder, turn = turn_, mailbox = mailbox_] {
    std::string reason;
    std::shared_ptr<ChunkStore> store = ChunkStore::open(folder, &reason);
    mailbox->post([this, folder, turn, store, reason] {
      if (turn == turn_) opened(folder, store, reason);
    });
  });
}

void CopyChunks::late() {
  if (state_ != State::kOpening || std::exchange(is_late_, true)) return;
  say(Level::kWarn, "no chunks are read: their folder's file system does not answer");
}

void CopyChunks::opened(const std::string& folder, std::shared_ptr<ChunkStore> store,
                        const std::string& reason) {
  state_ = State::kOpened;
  store_ = std::move(store);
  view_ = {};
  if (store_ == nullptr) {
    none_reason_ = reason;
    warn_of_none();
  } else {
    view_.chunks = store_->chunks();
    view_.samples = store_->samples();
    view_.damaged = store_->damaged();
    if (view_.damaged != 0) {
      say(Level::kWarn, "{} chunks in {} are damaged: `sluice chunks verify`", view_.damaged,
          folder);
    }
  }
  for (const auto& ready : std::exchange(waiting_, {})) ready();
}

void CopyChunks::warn_of_none() {
  if (!surely_ || none_reason_.empty()) return;
  say(Level::kWarn, "no chunks are read: {}", none_reason_);
  none_reason_.clear();
}

void CopyChunks::release() {
  surely_ = false;
  none_reason_.clear();
  ++turn_;
  state_ = State::kNone;
  store_.reset();
  waiting_.clear();
  checked_.clear();
  supplied_.clear();
}

std::shared_ptr<const ChunkedCopy> CopyChunks::find(const std::string& path,
                                                    std::shared_ptr<ChunkRead>* read) {
  const auto place = store_ != nullptr ? store_->find(path) : std::nullopt;
  if (!place || (*read != nullptr && place->chunk != read_chunk_)) return nullptr;
  if (*read == nullptr) {
    // The store's descriptors are used as long as it is read.
    *read = std::shared_ptr<ChunkRead>(store_->read(place->chunk).release(),
                                       [store = store_](ChunkRead* ended) { delete ended; });
    read_chunk_ = place->chunk;
    ++view_.reads;
    view_.read_bytes += store_->bytes(place->chunk);
  }
  auto copy = std::make_shared<ChunkedCopy>();
  *copy = {store_, *read, *place, stale_ns_};
  return copy;
}

void CopyChunks::check(const std::vector<std::string>& folders, bool any_mount,
                       std::function<void()> done) {
  const auto left = std::make_shared<size_t>(1);
  const auto one_less = [left, done = std::move(done)] {
    if (--*left == 0) done();
  };
  const uint64_t key = folders.empty() ? 0 : mount_key(folders.front());
  for (const std::string& folder : folders) {
    if (store_ == nullptr || stale_ns_ < kCachedAttributesNs) break;
    if (!checked_.insert(folder).second) continue;
    ++*left;
    executor_.run(key, [folder, any_mount, one_less, store = store_, mailbox = mailbox_] {
      check_folder(folder, any_mount, store.get());
      mailbox->post(one_less);
    });
  }
  one_less();
}

void CopyChunks::doubt(const std::string& path) {
  if (store_ != nullptr) store_->doubt(path);
}

void CopyChunks::doubt_all() {
  if (store_ != nullptr) store_->doubt_all();
}

}  // namespace sluice::optimizer
