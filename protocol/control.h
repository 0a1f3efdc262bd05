// Control messages between a job (or the sluice command) and the optimizer, over a
// SOCK_SEQPACKET Unix socket: one packet, one message, a fixed header and a body.
// docs/protocol.md is the grammar in prose.
//
// A job holds no descriptor of Sluice open: for each file it connects, sends a request, receives
// the answer and closes. The session lives in shared memory (ring.h) and ends when its processes
// have ended, which the optimizer learns from pidfds, or from kBye.
#pragma once

#include <cstddef>
#include <cstdint>

#include "protocol/access_identity.h"
#include "protocol/version.h"

namespace sluice::protocol {

inline constexpr uint32_t kControlMagic = 0x4c545343;  // "CSTL"
inline constexpr size_t kMaxPacket = 16384;            // bytes, header included
inline constexpr size_t kMaxPath = 1024;               // bytes, truncated beyond; display only

enum class MessageKind : uint32_t {
  // job -> optimizer. Body Hello, then its options as "name=value\n" text (options.h).
  kHello = 1,
  // answer. Body Welcome; one descriptor: the session's memfd.
  kWelcome = 2,
  // answer to anything. Body: one line of text with the reason.
  kRefused = 3,
  // job -> optimizer. Body File, then the path as text; one descriptor of the file: the job's own.
  // The optimizer reopens it through /proc/self/fd and closes it at once.
  kFile = 4,
  // answer. Body FileKnown.
  kFileKnown = 5,
  // job -> optimizer, the last process of a session is about to exit. Body Bye.
  kBye = 6,
  // answer, when every descriptor of the session's files has been closed. No body.
  kGone = 7,
  // sluice -> optimizer. No body.
  kStatus = 8,
  // answers: JSON text in several messages; `more` is 1 except in the last.
  kStatusText = 9,
  // sluice -> optimizer: exit. Answered by kGone.
  kStop = 10,
  // job -> optimizer. Body Dataset, then its name as text. sluice.h: sluice_dataset.
  kDataset = 11,
  // answer. Body DatasetKnown.
  kDatasetKnown = 12,
  // job -> optimizer. Body Samples; one descriptor: a memfd with `count` 32-bit indices.
  // sluice.h: sluice_order.
  kOrder = 13,
  // answer. No body.
  kDone = 14,
  // job -> optimizer. Body Samples; one descriptor: a memfd with `count` * `each` paths, each ended
  // by a NUL, absolute or empty: samples [first, first + count) are these whole files, `each` of
  // them; an empty path is none. sluice.h: sluice_locate_files, sluice_locate_parts.
  kLocate = 15,
  // job -> optimizer. Body StageAsked.
  kStage = 16,
  // answer. No body; one descriptor: the memfd of the stage's index (stage.h).
  kStageKnown = 17,
  // job -> optimizer. Body Settle. Answered by kDone once no copy can be opened of any file that
  // changed on this host, or was covered by a mount, before the request. Sent by jobs that cannot
  // use the optimizer's inotify themselves (stage.h: draining), and after a mount.
  kSettle = 18,
  // job -> optimizer. Body Samples, then as text `count` pairs of a sample's index, 4 bytes, and an
  // absolute path, ended by a NUL: a worker opened these files while it read these samples.
  // Answered by kDone.
  kSeen = 19,
  // job -> optimizer. Body Record; one descriptor: the file in which this session's samples are
  // recorded (trace.h), opened for this alone. Answered by kDone.
  kRecord = 20,
  // job -> optimizer. Body Samples; one descriptor: a memfd with `count` Places: samples
  // [first, first + count) are these bytes of the followed file `file`. Answered by kDone.
  // sluice.h: sluice_locate_extents.
  kLocateExtents = 21,
  // job -> optimizer. Body Samples; one descriptor: a memfd with `count` lengths, 4 bytes each, and
  // then the keys one after the other: samples [first, first + count) are the records with these
  // keys of the followed LMDB file `file`. Answered by kDone. sluice.h: sluice_locate_keys.
  kLocateKeys = 22,
  // job -> optimizer. Body Samples; one descriptor: a memfd with `count` SampleImportances.
  // Answered by kDone. sluice.h: sluice_report_importance.
  kImportance = 23,
  // job -> optimizer. Body Samples; one descriptor: a memfd of `count` bytes, one for each sample
  // of the dataset: 0 for samples that are not the job's to train. The optimizer replaces them with
  // 1 for samples that epoch `epoch` fetches, 0 for the others. Answered by any number of kWorking
  // and then kDone; by kRefused at any time. sluice.h: sluice_select.
  kSelect = 24,
  // job -> optimizer. Body Samples; one descriptor: a memfd of `count` samples, 4 bytes each: those
  // that the job requests at positions [first, first + count) of epoch `epoch`. The optimizer
  // replaces them with the samples to read there, and how in the upper bits (kDeliveryShift).
  // Answered by kDone. sluice.h: sluice_serve.
  kDeliver = 25,
  // optimizer -> job. Empty. The request is being handled, and the answer follows: sent at once,
  // and then about ten times a second.
  kWorking = 26,
  // job -> optimizer. Body UsedFile, then the file's absolute path, ended by a NUL: how a file was
  // used that a worker opened while it read a sample. Answered by kDone; if sample files are not
  // used in this way, only once no copy of the file can be opened any more.
  kFileUse = 27,
  // job -> optimizer. Body Listed; one descriptor: a folder on slow storage that the job has
  // opened, which took long. The optimizer may list folders beside it ahead of the job. Answered by
  // kDone, or by kRefused if further reports are of no use for now.
  kListed = 28,
  // job -> optimizer. Body Start, then what identifies the command as text. What it opened on slow
  // storage as it started last may be fetched ahead. Answered by kDone.
  kStart = 29,
  // job -> optimizer. Body Samples; one descriptor: a memfd with the same text and `count` absolute
  // paths, each ended by a NUL: what the command opened as it started. Answered by kDone.
  kStarted = 30,
  // job -> optimizer. Body TakeFile, then an absolute path, ended by a NUL, whose path_hash() is in
  // Header::opened_ahead. Answered by kFileTaken; by kDone if the file is not open, or no more.
  kTakeFile = 31,
  // answer. Body TakenFile; one descriptor: the file, opened for reading, at its begin, with no
  // flag
  // set and no other process using it. The optimizer closes its own.
  kFileTaken = 32,
  // job -> optimizer. Body Start. The job is about to do what a file that is open elsewhere may
  // change: nothing is opened ahead of the session any more. Answered by kDone once all is closed.
  kCloseAhead = 33,
};

struct MessageHeader {
  uint32_t magic = kControlMagic;
  uint32_t version = kVersion;
  MessageKind kind{};
  uint32_t more = 0;
};
static_assert(sizeof(MessageHeader) == 16);

struct Hello {
  uint32_t pid;  // the pid as the job sees it; SO_PEERCRED decides
  uint32_t reserved;
};

struct Welcome {
  uint64_t session;
  uint64_t token;
  uint64_t size;  // bytes of the memfd
};

struct File {
  uint64_t session;
  uint64_t token;
  uint64_t device;      // st_dev of the job's descriptor
  uint64_t inode;       // st_ino
  uint64_t size;        // bytes
  uint32_t mapped;      // 1: will be mapped, 0: will be read
  uint32_t checkpoint;  // CheckpointMode that the library chose
};

struct FileKnown {
  uint32_t file;      // id for events
  uint32_t flags;     // kFileUnusable: followed, but not prefetched
  uint64_t distance;  // bytes per cell that suit budget and storage
};
inline constexpr uint32_t kFileUnusable = 1;
// The file does not fit the budget: the library zaps passed cells of shared, unlocked mappings and
// reports them with kZapped, and the optimizer drops their pages.
inline constexpr uint32_t kFileDropBehind = 2;

enum class CheckpointMode : uint32_t { kOff = 0, kCell = 1, kPage = 2, kObserve = 3, kStream = 4 };

struct Dataset {
  uint64_t session;
  uint64_t token;
  uint64_t samples;
};

struct DatasetKnown {
  uint32_t dataset;  // id for events
  uint32_t located;  // samples whose location is known, in percent, rounded down
};

// What a memfd says about samples, or about positions in an epoch's order: [first, first + count).
struct Samples {
  uint64_t session;
  uint64_t token;
  uint64_t first;  // kSelect: the seed of the job's own random numbers
  uint64_t count;
  uint64_t bytes;  // of the memfd
  uint32_t dataset;
  uint32_t epoch;  // kOrder, kSelect, kDeliver
  union {
    uint32_t flags;  // kOrder: SLUICE_ORDER_*
    uint32_t rank;   // kSelect, kDeliver: below `ranks`
  };
  union {
    uint32_t file;  // kLocateExtents, kLocateKeys: the file's id
    uint32_t each;  // kLocate: paths of a sample, 1 to kMostFilesEach
    struct {
      uint16_t all, on_host;
    } ranks;  // kSelect, kDeliver: of the job, each of which trains a part of the dataset; 0: it is
              // no rank
  };
  uint64_t group;  // kImportance, kSelect, kDeliver: the same for all ranks of a job; 0: none
};

inline constexpr uint32_t kMostFilesEach = 4;

// [offset, offset + length) of a file, bytes.
struct Place {
  uint64_t offset;
  uint32_t length;
  uint32_t reserved;
};

// A sample's importance when it was trained; 16 bytes, as iCache's clients report it.
struct SampleImportance {
  uint32_t sample;
  uint32_t label;  // its class; kNoLabel: not known
  double value;
};
inline constexpr uint32_t kNoLabel = UINT32_MAX;

// The most positions of one kDeliver, so that other requests do not wait for long.
inline constexpr uint64_t kMostDelivered = 1 << 14;

// kDeliver: the sample to read, and above it an enumerator of sluice.h: SLUICE_SERVED_*.
inline constexpr uint32_t kDeliveryShift = 29;
inline constexpr uint32_t kDeliverySample = (1U << kDeliveryShift) - 1;

struct Record {
  uint64_t session;
  uint64_t token;
};

struct StageAsked {
  uint64_t session;
  uint64_t token;
};

struct Settle {
  uint64_t session;
  uint64_t token;
  uint64_t device;  // a file whose copies are dropped as well; zeros: none
  uint64_t inode;
  uint32_t
      mapped;  // 1: a shared mapping may write it: no copy is made of it while the session lives
  uint32_t reserved;
};

// What a job did with a file that a sample opened.
enum class FileUse : uint32_t {
  kShared = 1,      // one open file description was read in several samples
  kLocked = 2,      // flock, or fcntl's locks
  kMapped = 4,      // mmap
  kReadInPart = 8,  // opened, read in part, closed
  kReadWhole = 16,  // read whole, after kReadInPart was reported
};

struct UsedFile {
  uint64_t session;
  uint64_t token;
  FileUse use;
  uint32_t reserved;
};

struct Listed {
  uint64_t session;
  uint64_t token;
  uint64_t took_ns;  // to open it, and to read its first entry
};

struct Start {
  uint64_t session;
  uint64_t token;
};

struct TakeFile {
  uint64_t session;
  uint64_t token;
  AccessIdentity identity;  // of the thread that asks
  uint32_t thread;          // its id
  uint32_t reserved;
};

// What the path was when the optimizer opened it.
struct TakenFile {
  uint64_t device, inode;
  int64_t changed_ns;  // time of the last change of status, since 1970
};

struct Bye {
  uint64_t session;
  uint64_t token;
};

static_assert(sizeof(Hello) == 8 && sizeof(Welcome) == 24 && sizeof(File) == 48);
static_assert(sizeof(FileKnown) == 16 && sizeof(Bye) == 16 && sizeof(Record) == 16);
static_assert(sizeof(Dataset) == 24 && sizeof(DatasetKnown) == 8 && sizeof(Samples) == 64);
static_assert(sizeof(Place) == 16 && sizeof(SampleImportance) == 16);
static_assert(sizeof(StageAsked) == 16 && sizeof(Settle) == 40 && sizeof(UsedFile) == 24);
static_assert(sizeof(Listed) == 24 && sizeof(Start) == 16);
static_assert(sizeof(TakeFile) == 80 && sizeof(TakenFile) == 24);

}  // namespace sluice::protocol
