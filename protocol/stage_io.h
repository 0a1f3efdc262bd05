// Every memory ordering of the stage's index, in one place.
//
// A record is written by one thread of the optimizer and read by any thread of any job: the writer
// makes `sequence` odd, writes the words, and releases it as an even number; a reader copies the
// words between two reads of `sequence` and accepts them only if both gave the same even number.
// Words are acquired and released one by one, not by fences, which the thread sanitizer does not
// know. `state` is a futex word of its own, released after the words. Readers never wait for
// writers: a record that is being written counts as none.
#pragma once

#include <cstring>

#include "protocol/stage.h"

namespace sluice::protocol {

// The record's content and state as they were at one moment. False: it is being written right now.
// Any thread; async-signal-safe.
inline bool read_copy(const StageFile& file, StageCopy* copy, StageState* state) {
  const uint32_t before = file.sequence.load(std::memory_order_acquire);
  if ((before & 1) != 0) return false;
  uint64_t words[kStageCopyWords];
  for (size_t i = 0; i < kStageCopyWords; ++i) {
    words[i] = file.words[i].load(std::memory_order_acquire);
  }
  *state = static_cast<StageState>(file.state.load(std::memory_order_acquire));
  if (file.sequence.load(std::memory_order_relaxed) != before) return false;
  memcpy(copy, words, sizeof *copy);
  return true;
}

// Only for the optimizer's core thread.
inline void write_copy(StageFile& file, const StageCopy& copy, StageState state) {
  const uint32_t sequence = file.sequence.load(std::memory_order_relaxed);
  file.sequence.store(sequence + 1, std::memory_order_relaxed);
  uint64_t words[kStageCopyWords];
  memcpy(words, &copy, sizeof copy);
  for (size_t i = 0; i < kStageCopyWords; ++i) {
    file.words[i].store(words[i], std::memory_order_release);
  }
  file.state.store(static_cast<uint32_t>(state), std::memory_order_release);
  file.sequence.store(sequence + 2, std::memory_order_release);
}

inline constexpr uint32_t kNoStageFile = UINT32_MAX;

// The index of the record of `key`, kNoStageFile if there is none. Any thread.
inline uint32_t find_copy(const Stage& stage, const StageKey& key, StageCopy* copy,
                          StageState* state) {
  const uint64_t groups[] = {key.low % kStageGroups, (key.low >> 32) % kStageGroups};
  for (const uint64_t group : groups) {
    for (const auto& bucket : stage.buckets[group]) {
      const uint64_t entry = bucket.load(std::memory_order_acquire);
      if (entry == 0 || entry >> 32 != key.high >> 32) continue;
      const uint32_t number = static_cast<uint32_t>(entry) - 1;
      if (number >= kStageFiles) continue;
      if (read_copy(stage.files[number], copy, state) && copy->key == key &&
          *state != StageState::kFree) {
        return number;
      }
    }
  }
  return kNoStageFile;
}

}  // namespace sluice::protocol
