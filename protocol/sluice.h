/* What a framework may tell Sluice about its samples. Exported by libsluice.so; a program that
 * runs without the library does not find the symbols and goes on without.
 *
 * All functions: any thread, not from a signal handler; they never block longer than the
 * library's patience with its optimizer (half a second in the life of a process), keep errno, and
 * return 0, or a negative errno that the caller may ignore: nothing that is told or not told
 * here changes a byte that the job reads. Arguments stay the caller's.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A dataset of `samples` numbered samples, 0 to samples - 1. `name` tells datasets of one run
 * apart and finds again what was learned of it in an earlier run: it should hold the class and
 * what identifies its data. Returns a number greater than 0, the same for the same name in every
 * process of the job, or a negative errno. */
int sluice_dataset(const char* name, uint64_t samples);

/* Positions [first, first + count) of the sequence in which this job's epoch `epoch` (from 0)
 * reads the dataset are the samples indices[0..count). What was told of positions from `first` on
 * is replaced. `flags`: SLUICE_ORDER_WHOLE if the epoch ends there (count may be 0 then). An epoch
 * may be told before the one before it has ended. */
#define SLUICE_ORDER_WHOLE 1u
int sluice_order(int dataset, uint32_t epoch, uint64_t first, const uint64_t* indices,
                 uint64_t count, uint32_t flags);

/* The calling thread is about to read sample `index`, and has read it. What it opens and reads in
 * between is what the sample is made of. Begun samples of one thread may overlap, as where a batch
 * is read with one call: what is read then belongs to one of them, which one is not said. Cheap: an
 * event, no message. */
int sluice_begin(int dataset, uint64_t index);
int sluice_end(int dataset, uint64_t index);

/* The calling thread begins, and has ended, a fetch: it reads samples of the dataset, and does with
 * them what needs their files (decodes a batch, say). Within a fetch or a begun sample, and there
 * alone, this thread's opens of the dataset's files may be answered from memory; a descriptor that
 * is still open when the last of them ends reads the file itself from then on. Fetches nest. */
int sluice_fetch_begin(int dataset);
int sluice_fetch_end(int dataset);

/* 1 while it is of use to tell which samples are read; 0 where nothing can be gained (whole files
 * on a local disk, say): sluice_begin and sluice_end do nothing then, and whoever calls this once
 * for many samples may leave them out. Changes from epoch to epoch at most. */
int sluice_wanted(void);

/* The calling thread has waited `ns` nanoseconds, up to now, for its next batch: a loop that takes
 * what workers read. Without it what the calls that read data take is what was waited. */
int sluice_waited(uint64_t ns);
/* This process, and what it forks, reads for a loop elsewhere that calls sluice_waited: its own
 * reads are not counted as waits. */
int sluice_reads_for_others(void);

/* What follows tells where samples are before they were read once. */

/* Samples [first, first + count) are the whole files paths[0..count); relative ones are taken from
 * the current folder, now. They are fetched as an order says, from the first epoch on. */
int sluice_locate_files(int dataset, uint64_t first, const char* const* paths, uint64_t count);

/* Samples [first, first + count) are the bytes [offsets[i], offsets[i] + lengths[i]) of the file
 * `path`; a length of 0 says nothing of that sample. The file is opened once, to be followed from
 * then on, and closed again. */
int sluice_locate_extents(int dataset, uint64_t first, const char* path, const uint64_t* offsets,
                          const uint32_t* lengths, uint64_t count);

/* The same for one sample: `index` is [offset, offset + length) of the file `path`, bytes. */
int sluice_locate_extent(int dataset, uint64_t index, const char* path, uint64_t offset,
                         uint64_t length);

/* Samples [first, first + count) are the LMDB records with these keys, in the main database of the
 * file `path` (data.mdb). keys holds them one after the other, lengths[] their lengths in bytes; a
 * length of 0 says nothing of that sample. Where they lie is found out by reading the file's index,
 * which takes a moment; a file whose records were written while that went on is not used. */
int sluice_locate_keys(int dataset, uint64_t first, const char* path, const void* keys,
                       const uint32_t* lengths, uint64_t count);

/* What follows is about importance (SLUICE_IMPORTANCE), an opt-in that may change what is trained.
 */

/* What the user chose: 0 off, 1 `loss` (tell what samples matter), 2 `iis` (and fetch by that). */
int sluice_importance(void);

/* How many samples epochs fetch, as the user chose it: epochs before `warm_up` (from 0), and of the
 * later ones each `full_every`-th (0: none), fetch all; the others `share` of them on average.
 * Ranks that must have equally many batches go by it, whatever their optimizers answer. -ENOTSUP
 * without SLUICE_IMPORTANCE=iis. */
struct sluice_selection_rule {
  uint32_t warm_up, full_every;
  double share;
};
int sluice_selection(struct sluice_selection_rule* rule);

/* This process is a rank of the job `name`: those on one host that say the same train one model,
 * and what samples matter to one they matter to all. To be said before the first of what follows;
 * it holds for children that are forked later. Processes that say nothing, or NULL, are one job
 * with those that they start. -ENOTSUP without SLUICE_IMPORTANCE. */
int sluice_rank_of(const char* name);

/* The seed of the job's own random numbers: which samples sluice_select() chooses follows from it,
 * unless the user gave another (SLUICE_IMPORTANCE=iis:seed=N); of several ranks it is that of the
 * first that asks. Without this call it is 1. To be said before the first sluice_select(). -ENOTSUP
 * without SLUICE_IMPORTANCE=iis. */
int sluice_seed(uint64_t seed);

/* The samples ids[0..count) were trained and mattered values[0..count), any scale, more is more: a
 * loss, usually. A value replaces what was told of the sample before; those that are no numbers or
 * infinite are ignored. -ENOTSUP without SLUICE_IMPORTANCE. */
int sluice_report_importance(int dataset, const uint64_t* ids, const double* values,
                             uint64_t count);

/* The same, and sample ids[i] is of class labels[i], 0xffffffff where that is not known: what
 * SLUICE_IMPORTANCE=iis:substitute=class goes by. */
int sluice_report_labelled(int dataset, const uint64_t* ids, const double* values,
                           const uint32_t* labels, uint64_t count);

/* On entry chosen[i] is 0 for samples that are not the job's to train. chosen[i] becomes 1 for each
 * sample i of the dataset's `samples` that the job's epoch `epoch` (from 0) is to fetch, 0 for the
 * others; for the first epochs, and every third, 1 for all. By what is known now. Each process
 * asks for epochs of its own: ranks, each with its shard, choose as many as sluice_selection()
 * says. Not 0: do as if all were chosen; `chosen` may hold anything. -ENOTSUP without
 * SLUICE_IMPORTANCE=iis. Of a million samples it takes some 0.2 s, of several millions seconds,
 * five at most, in which the calling thread takes no signals. */
int sluice_select(int dataset, uint32_t epoch, uint8_t* chosen, uint64_t samples);

/* How a sample is served. */
enum {
  SLUICE_SERVED_H = 0,           /* itself, from memory, an important one (H-cache) */
  SLUICE_SERVED_EXACT = 1,       /* itself, from memory (L-cache) */
  SLUICE_SERVED_SUBSTITUTED = 2, /* another unimportant one, from memory */
  SLUICE_SERVED_MISS = 4,        /* itself, from storage */
  SLUICE_SERVED_MISS_OTHER = 5   /* another one, whose turn was given away before */
};

/* At positions [first, first + count) of epoch `epoch`, for which sluice_select() was asked, the
 * job's order has the samples samples[0..count). They are replaced by those to be read and trained
 * there, and how[i] becomes one of the above. Ask for an epoch's positions in order, each once,
 * some thousands at a time. Within an epoch no sample is served twice, but where one is asked for
 * twice. Not 0: serve what was asked for; both arrays may hold anything. -ENOTSUP without
 * SLUICE_IMPORTANCE=iis. */
int sluice_serve(int dataset, uint32_t epoch, uint64_t first, uint64_t* samples, uint8_t* how,
                 uint64_t count);

#ifdef __cplusplus
}
#endif
