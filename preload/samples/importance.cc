#include "preload/samples/importance.h"

#include <cerrno>

#include "preload/samples/memory_file.h"
#include "preload/session/client.h"
#include "protocol/control.h"
#include "protocol/ring.h"

namespace sluice::preload {
namespace {

bool is_dataset(int dataset) {
  return dataset > 0 && session_of_file_lives(static_cast<uint32_t>(dataset));
}

}  // namespace

int report_importance(int dataset, const uint64_t* ids, const double* values, uint64_t count) {
  if ((ids == nullptr || values == nullptr) && count != 0) return -EINVAL;
  if (!is_dataset(dataset)) return dataset > 0 ? -ESTALE : -EINVAL;
  MemoryFile memory;
  for (uint64_t i = 0; i < count; ++i) {
    const protocol::SampleImportance one = {ids[i], values[i]};
    if (!memory.add(&one, sizeof one)) return -ENOSPC;
  }
  protocol::Samples about = {};
  about.dataset = static_cast<uint32_t>(dataset);
  about.count = count;
  return tell_samples(protocol::MessageKind::kImportance, about, memory);
}

int select_samples(int dataset, uint32_t epoch, uint8_t* chosen, uint64_t samples) {
  if (chosen == nullptr || samples == 0 || samples > protocol::kMaxSamples) return -EINVAL;
  if (!is_dataset(dataset)) return dataset > 0 ? -ESTALE : -EINVAL;
  MemoryFile memory;
  if (!memory.reserve(samples)) return -ENOSPC;
  protocol::Samples about = {};
  about.dataset = static_cast<uint32_t>(dataset);
  about.count = samples;
  about.epoch = epoch;
  if (const int error = tell_samples(protocol::MessageKind::kSelect, about, memory); error != 0) {
    return error;
  }
  return memory.read(chosen, samples) ? 0 : -EIO;
}

}  // namespace sluice::preload
