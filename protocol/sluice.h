/* What a framework may declare to Sluice about its samples. Exported by libsluice.so; a program
 * that runs without the library does not find the symbols and continues without them.
 *
 * All functions: any thread, not from a signal handler. They preserve errno, and return 0, or a
 * negative errno that the caller may ignore: no declaration, and no omission, changes a byte that
 * the job reads. Arguments remain owned by the caller. They may wait for the optimizer: 0.25 s for
 * one answer; for answers that do not come a process waits 0.5 s (SLUICE_PATIENCE), and later on
 * less than 0.5 % of its time. sluice_select() alone waits longer, for an optimizer that works on
 * its answer.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A dataset of `samples` numbered samples, 0 to samples - 1. `name` distinguishes datasets of one
 * run and identifies what was learned in an earlier run: it should contain the class and what
 * identifies its data. Returns a number greater than 0, the same for the same name in every process
 * of the job, or a negative errno. */
int sluice_dataset(const char* name, uint64_t samples);

/* Positions [first, first + count) of the sequence in which this job's epoch `epoch` (from 0) reads
 * the dataset are the samples indices[0..count). Replaces what was declared of positions from
 * `first` on. `flags`: SLUICE_ORDER_WHOLE if the epoch ends there (count may be 0 then). An epoch
 * may be declared before the previous one has ended. SLUICE_ORDER_TENTATIVE: it may not come, or be
 * another order; `epoch` follows the running one, and `first` is 0. Nothing is read ahead for it,
 * but what the running epoch reads may be laid out on a fast disk as it would be read then,
 * whatever is declared of that epoch later. */
#define SLUICE_ORDER_WHOLE 1u
#define SLUICE_ORDER_TENTATIVE 2u
int sluice_order(int dataset, uint32_t epoch, uint64_t first, const uint64_t* indices,
                 uint64_t count, uint32_t flags);

/* 1: tentative orders are of use (SLUICE_POLICY=lcache with a folder); 0: not. */
int sluice_tentative(void);

/* The calling thread is about to read sample `index`, and has read it. What it opens and reads in
 * between is what the sample consists of. Begun samples of one thread may overlap, as where a batch
 * is read with one call: what is read then belongs to one of them, without saying which. Cheap: an
 * event, no message. */
int sluice_begin(int dataset, uint64_t index);
int sluice_end(int dataset, uint64_t index);
/* Both in one call: the thread has read sample `previous`, and is about to read `index`; a negative
 * one is left out. Returns `index`, for callers that map it over a batch. */
int sluice_next(int dataset, int index, int previous);

/* The calling thread begins, and has ended, a fetch: it reads samples of the dataset, and processes
 * them as far as that needs their files (decodes a batch, say). Only within a fetch or a begun
 * sample may this thread's opens of the dataset's files lead to copies in memory; a descriptor that
 * is still open when the last of them ends reads the file itself from then on. Fetches nest. */
int sluice_fetch_begin(int dataset);
int sluice_fetch_end(int dataset);

/* 1 while it is useful to report which samples are read; 0 where nothing can be gained (whole files
 * on a local disk, say): then sluice_begin and sluice_end do nothing, and a caller that checks this
 * once for many samples may omit them. Changes from epoch to epoch at most. */
int sluice_wanted(void);

/* The calling thread has waited `ns` nanoseconds, up to now, for its next batch: a loop that
 * consumes what workers read. Without this call, the time of the calls that read data counts as
 * waiting. */
int sluice_waited(uint64_t ns);
/* This process, and its future children, read for a loop in another process that calls
 * sluice_waited: their own reads are not counted as waits. */
int sluice_reads_for_others(void);

/* The following functions declare where samples are before they were read once. */

/* Samples [first, first + count) are the whole files paths[0..count); relative paths are resolved
 * now, from the current folder. They are fetched in the declared order, from the first epoch on. */
int sluice_locate_files(int dataset, uint64_t first, const char* const* paths, uint64_t count);

/* Sample first + i is the whole files paths[i * each] to paths[i * each + each - 1], 1 to 4 of them
 * (an image and its mask, say); NULL or "" is no file, and a sample without any stays unknown. */
int sluice_locate_parts(int dataset, uint64_t first, const char* const* paths, uint64_t count,
                        uint32_t each);

/* Samples [first, first + count) are the bytes [offsets[i], offsets[i] + lengths[i]) of the file
 * `path`; a length of 0 leaves that sample unknown. The file is opened once, to be followed from
 * then on, and closed again. */
int sluice_locate_extents(int dataset, uint64_t first, const char* path, const uint64_t* offsets,
                          const uint32_t* lengths, uint64_t count);

/* The same for one sample: `index` is [offset, offset + length) of the file `path`, bytes. */
int sluice_locate_extent(int dataset, uint64_t index, const char* path, uint64_t offset,
                         uint64_t length);

/* Samples [first, first + count) are the LMDB records with these keys, in the main database of the
 * file `path` (data.mdb). keys holds them one after the other, lengths[] their lengths in bytes; a
 * length of 0 leaves that sample unknown. Sluice reads the file's index to find them, which takes a
 * moment; a file whose records are written meanwhile is not used. */
int sluice_locate_keys(int dataset, uint64_t first, const char* path, const void* keys,
                       const uint32_t* lengths, uint64_t count);

/* The percentage of the dataset's samples whose location is known by now, rounded down: declared,
 * learned from what was read, or stored by an earlier run. Asks the optimizer. */
int sluice_located(int dataset);

/* Collects the names of the files that the calling thread opens for reading, as far as they may be
 * samples, and those of threads that may read for it, as a pool's do: of all threads that have
 * begun no sample of their own. `on` is 1 to begin, 0 to end. One thread of a process at a time:
 * -EBUSY while another one does. */
int sluice_watch_opens(int on);

/* Copies the absolute paths that were collected since the last call to `text`, in the order of
 * opening, each ended by a NUL, as many as fit into `size` bytes; the others are lost. Returns
 * their length, bytes. Files that lie on a mount that is never staged are not collected. */
int sluice_take_opens(char* text, uint64_t size);

/* The following functions concern importance (SLUICE_IMPORTANCE), an opt-in that may change what is
 * trained. */

/* The user's choice: 0 off, 1 `loss` (report importance), 2 `iis` (and select samples by it). */
int sluice_importance(void);

/* 1: the user lets every epoch of all samples be read in another order than the job's
 * (SLUICE_SUBSTITUTE=any, with SLUICE_POLICY=brand or pool); 0: not. sluice_select() then fetches
 * all, and is refused where that cannot be done; sluice_serve() decides the order. */
int sluice_substitutes(void);

/* How many samples epochs fetch, as the user chose: epochs before `warm_up` (from 0), and of the
 * later ones each `full_every`-th (0: none), fetch all; the others `share` of them on average.
 * Ranks that must have equally many batches use it, whatever their optimizers answer. -ENOTSUP
 * without SLUICE_IMPORTANCE=iis. */
struct sluice_selection_rule {
  uint32_t warm_up, full_every;
  double share;
};
int sluice_selection(struct sluice_selection_rule* rule);

/* This process is a rank of the job `name`: processes on one host that declare the same name train
 * one model, and share the importance of samples. Call it before the functions below; it applies to
 * children that are forked later. Processes that declare nothing, or NULL, form one job with the
 * processes that they start. -ENOTSUP without SLUICE_IMPORTANCE. */
int sluice_rank_of(const char* name);

/* This process is rank `rank` (from 0) of `ranks` processes, `on_host` of them on this host, that
 * each train their own part of every epoch: where chunks decide the order (sluice_substitutes())
 * its part are its own chunks. It applies to later calls of sluice_select(), in which all samples
 * are the job's, and of sluice_serve(), which delivers each sample of the part once for as many
 * requests of whichever samples: a rank requests samples / ranks, rounded up or down; and to
 * children that are forked later. `ranks` 1: no rank any more. -EINVAL unless rank < ranks <= 65535
 * and 1 <= on_host <= ranks. -ENOTSUP without sluice_substitutes(). */
int sluice_rank(uint32_t rank, uint32_t ranks, uint32_t on_host);

/* The seed of the job's own random numbers, which determines the samples that sluice_select()
 * chooses unless the user set another (SLUICE_IMPORTANCE=iis:seed=N); of several ranks the first
 * one that calls sluice_select() determines it. Without this call it is 1. Call it before the first
 * sluice_select(). -ENOTSUP without SLUICE_IMPORTANCE=iis
 * and without sluice_substitutes(). */
int sluice_seed(uint64_t seed);

/* The samples ids[0..count) were trained and had importance values[0..count), on any scale, higher
 * is more important: a loss, usually. A value replaces the sample's previous one; NaN and infinite
 * values are ignored. -ENOTSUP without SLUICE_IMPORTANCE. */
int sluice_report_importance(int dataset, const uint64_t* ids, const double* values,
                             uint64_t count);

/* The same, and sample ids[i] is of class labels[i], 0xffffffff if not known: used by
 * SLUICE_IMPORTANCE=iis:substitute=class. */
int sluice_report_labelled(int dataset, const uint64_t* ids, const double* values,
                           const uint32_t* labels, uint64_t count);

/* On entry chosen[i] is 0 for samples that are not the job's to train. chosen[i] becomes 1 for each
 * sample i of the dataset's `samples` that the job's epoch `epoch` (from 0) should fetch, 0 for the
 * others, by present knowledge; 1 for all in epochs that fetch all. Each process asks for its own
 * epochs: ranks, each with its shard, choose as many as sluice_selection() says. If the result is
 * not 0, `chosen` may hold anything: fetch all. -ENOTSUP as of sluice_seed(). For a
 * million samples it takes some 0.2 s, for several millions seconds, five at most, in which the
 * calling thread takes no signals. */
int sluice_select(int dataset, uint32_t epoch, uint8_t* chosen, uint64_t samples);

/* How a requested sample is delivered. */
enum {
  SLUICE_SERVED_H = 0,           /* itself, from memory, an important one (H-cache) */
  SLUICE_SERVED_EXACT = 1,       /* itself, from memory (L-cache) */
  SLUICE_SERVED_SUBSTITUTED = 2, /* a substitute: another unimportant one, from memory */
  SLUICE_SERVED_MISS = 4,        /* itself, from storage */
  SLUICE_SERVED_MISS_OTHER = 5   /* another one that was displaced before, from storage */
};

/* At positions [first, first + count) of epoch `epoch`, for which sluice_select() was called, the
 * job's order has the samples samples[0..count). They are replaced by the samples to read and train
 * there, and how[i] becomes one of the above. Request an epoch's positions in order, each once,
 * some thousands at a time. Within an epoch no sample is returned twice unless it was requested
 * twice. If the result is not 0, both arrays may hold anything: read what was requested. -ENOTSUP
 * as of sluice_seed(). */
int sluice_serve(int dataset, uint32_t epoch, uint64_t first, uint64_t* samples, uint8_t* how,
                 uint64_t count);

#ifdef __cplusplus
}
#endif
