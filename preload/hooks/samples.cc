// The functions that frameworks call (protocol/sluice.h). No logic: check, send, preserve errno.
#include "preload/samples/samples.h"

#include <cerrno>

#include "preload/base/keep_errno.h"
#include "preload/base/process.h"
#include "preload/base/real.h"
#include "preload/base/settings.h"
#include "preload/base/sys.h"
#include "preload/files/started.h"
#include "preload/samples/datasets.h"
#include "preload/samples/opens.h"
#include "preload/samples/pages.h"
#include "preload/samples/places.h"
#include "preload/session/client.h"
#include "preload/session/events.h"
#include "preload/session/waits.h"
#include "preload/stage/copy_counts.h"
#include "preload/stage/window.h"
#include "protocol/ring.h"
#include "protocol/sluice.h"

using namespace sluice::preload;  // NOLINT: every line here is about it

namespace {

bool usable() {
  if (g_settings.off || in_vfork_child()) return false;
  if (process_is_new()) process_after_fork();
  return true;
}

// `call`, if it can be made, for importance only with a SLUICE_IMPORTANCE of at least `importance`.
template <typename Call>
int declared(uint32_t importance, Call call) {
  const KeepErrno keep;
  return usable() && g_settings.importance >= importance ? call() : -ENOTSUP;
}

// Whether what an epoch reads is the optimizer's to decide.
bool is_decided() {
  return !g_settings.off && (g_settings.importance >= 2 || g_settings.substitutes);
}

uint64_t key_of(int dataset, uint64_t index) {
  return sluice::protocol::sample_key(static_cast<uint32_t>(dataset) & ((1U << kFileIdBits) - 1),
                                      index);
}

int begins(int dataset, uint64_t index) {
  if (dataset <= 0 || index >= sluice::protocol::kMaxSamples) return -EINVAL;
  if (process_is_new()) process_after_fork();
  window_begins();
  if (t_state.samples_begun == 0 && !samples_wanted()) return 0;
  t_state.sample = key_of(dataset, index);
  ++t_state.samples_begun;
  emit_sample_begin(static_cast<uint32_t>(dataset), key_of(dataset, index));
  page_watch_begins();
  return 0;
}

int ends(int dataset, uint64_t index) {
  if (dataset <= 0 || index >= sluice::protocol::kMaxSamples) return -EINVAL;
  window_ends();
  if (t_state.samples_begun == 0) return samples_wanted() ? -EINVAL : 0;
  page_watch_ends();
  release_sample_memory();
  --t_state.samples_begun;
  const CopyCounts copies = take_copy_counts();
  emit_sample_end(static_cast<uint32_t>(dataset), key_of(dataset, index), copies.given,
                  copies.left);
  send_seen_files(false);
  return 0;
}

}  // namespace

SLUICE_EXPORT int sluice_dataset(const char* name, uint64_t samples) {
  return declared(0, [&] {
    start_ends();  // what is opened from now on is data
    return declare_dataset(name, samples);
  });
}

SLUICE_EXPORT int sluice_order(int dataset, uint32_t epoch, uint64_t first, const uint64_t* indices,
                               uint64_t count, uint32_t flags) {
  return declared(0, [&] {
    send_seen_files(true);  // the optimizer needs the files' locations before the order
    return publish_order(dataset, epoch, first, indices, count, flags);
  });
}

SLUICE_EXPORT int sluice_begin(int dataset, uint64_t index) { return begins(dataset, index); }

SLUICE_EXPORT int sluice_end(int dataset, uint64_t index) { return ends(dataset, index); }

SLUICE_EXPORT int sluice_next(int dataset, int index, int previous) {
  if (previous >= 0) ends(dataset, static_cast<uint64_t>(previous));
  if (index >= 0) begins(dataset, static_cast<uint64_t>(index));
  return index;
}

SLUICE_EXPORT int sluice_fetch_begin(int dataset) {
  if (dataset <= 0) return -EINVAL;
  if (g_settings.off || in_seen_vfork_child()) return 0;
  if (process_is_new()) process_after_fork();
  window_begins();
  return 0;
}

SLUICE_EXPORT int sluice_fetch_end(int dataset) {
  if (dataset <= 0) return -EINVAL;
  window_ends();
  return 0;
}

SLUICE_EXPORT int sluice_waited(uint64_t ns) {
  return declared(0, [&] { return loop_waited(ns), 0; });
}

SLUICE_EXPORT int sluice_reads_for_others() {
  reads_for_others();
  return 0;
}

SLUICE_EXPORT int sluice_wanted() { return samples_wanted() ? 1 : 0; }

SLUICE_EXPORT int sluice_locate_files(int dataset, uint64_t first, const char* const* paths,
                                      uint64_t count) {
  return declared(0, [&] { return locate_files(dataset, first, paths, count, 1); });
}

SLUICE_EXPORT int sluice_locate_parts(int dataset, uint64_t first, const char* const* paths,
                                      uint64_t count, uint32_t each) {
  return declared(0, [&] { return locate_files(dataset, first, paths, count, each); });
}

SLUICE_EXPORT int sluice_located(int dataset) {
  return declared(0, [&] { return located(dataset); });
}

SLUICE_EXPORT int sluice_watch_opens(int on) {
  return declared(0, [&] { return watch_opens(on != 0); });
}

SLUICE_EXPORT int sluice_take_opens(char* text, uint64_t size) {
  return declared(0, [&] { return take_opens(text, size); });
}

SLUICE_EXPORT int sluice_locate_extents(int dataset, uint64_t first, const char* path,
                                        const uint64_t* offsets, const uint32_t* lengths,
                                        uint64_t count) {
  return declared(0, [&] { return locate_extents(dataset, first, path, offsets, lengths, count); });
}

SLUICE_EXPORT int sluice_locate_extent(int dataset, uint64_t index, const char* path,
                                       uint64_t offset, uint64_t length) {
  if (length > UINT32_MAX) return -EINVAL;
  const auto bytes = static_cast<uint32_t>(length);
  return sluice_locate_extents(dataset, index, path, &offset, &bytes, 1);
}

SLUICE_EXPORT int sluice_locate_keys(int dataset, uint64_t first, const char* path,
                                     const void* keys, const uint32_t* lengths, uint64_t count) {
  return declared(0, [&] { return locate_keys(dataset, first, path, keys, lengths, count); });
}

SLUICE_EXPORT int sluice_importance() {
  return g_settings.off ? 0 : static_cast<int>(g_settings.importance);
}

SLUICE_EXPORT int sluice_substitutes() { return !g_settings.off && g_settings.substitutes ? 1 : 0; }

SLUICE_EXPORT int sluice_tentative() { return !g_settings.off && g_settings.logs ? 1 : 0; }

SLUICE_EXPORT int sluice_selection(struct sluice_selection_rule* rule) {
  if (rule == nullptr) return -EINVAL;
  if (g_settings.off || g_settings.importance < 2) return -ENOTSUP;
  *rule = {g_settings.warm_up, g_settings.full_every, g_settings.selected_share};
  return 0;
}

SLUICE_EXPORT int sluice_rank_of(const char* name) {
  if (g_settings.off || g_settings.importance == 0) return -ENOTSUP;
  become_rank_of(name);
  return 0;
}

SLUICE_EXPORT int sluice_rank(uint32_t rank, uint32_t ranks, uint32_t on_host) {
  if (g_settings.off || !g_settings.substitutes) return -ENOTSUP;
  if (rank >= ranks || ranks > UINT16_MAX || on_host < 1 || on_host > ranks) return -EINVAL;
  become_rank(rank, static_cast<uint16_t>(ranks), static_cast<uint16_t>(on_host));
  return 0;
}

SLUICE_EXPORT int sluice_seed(uint64_t seed) {
  if (!is_decided()) return -ENOTSUP;
  select_by_seed(seed);
  return 0;
}

SLUICE_EXPORT int sluice_report_importance(int dataset, const uint64_t* ids, const double* values,
                                           uint64_t count) {
  return sluice_report_labelled(dataset, ids, values, nullptr, count);
}

SLUICE_EXPORT int sluice_report_labelled(int dataset, const uint64_t* ids, const double* values,
                                         const uint32_t* labels, uint64_t count) {
  return declared(1, [&] { return report_importance(dataset, ids, values, labels, count); });
}

SLUICE_EXPORT int sluice_select(int dataset, uint32_t epoch, uint8_t* chosen, uint64_t samples) {
  if (!is_decided()) return -ENOTSUP;
  return declared(0, [&] { return select_samples(dataset, epoch, chosen, samples); });
}

SLUICE_EXPORT int sluice_serve(int dataset, uint32_t epoch, uint64_t first, uint64_t* samples,
                               uint8_t* how, uint64_t count) {
  if (!is_decided()) return -ENOTSUP;
  return declared(0, [&] { return serve_samples(dataset, epoch, first, samples, how, count); });
}
