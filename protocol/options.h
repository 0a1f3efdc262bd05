// The one table of options. The environment variables of the library, the flags of `sluice run`,
// the keys of the TOML file, the text of the handshake, the help and docs/configuration.md are made
// from it. An option is added here and nowhere else.
//
// Freestanding: no allocation, no locale, usable before main and in any process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sluice::protocol {

enum class OptionKind : uint8_t {
  kText,        // anything
  kPaths,       // colon-separated
  kBytes,       // "50M", "auto" where autos is set; K, M, G, T are powers of 1024
  kNumber,      // decimal, within [low, high]
  kChoice,      // one of `choices`, separated by '|'
  kSwitch,      // on|off|1|0|yes|no|true|false
  kImportance,  // importance.h
};

enum class Option : uint8_t {
  kDataset,
  kDistance,
  kSize,
  kThreshold,
  kCheckpoint,
  kPrefetch,
  kMemory,
  kStage,
  kStale,
  kPolicy,
  kSubstitute,
  kImportance,
  kCacheDir,
  kPacks,
  kPlaces,
  kSocket,
  kLinger,
  kPatience,
  kLog,
  kReport,
  kRecord,
  kOff,
  kPython,
  kCallsites,
  kCrashTrace,
  kConfig,
  kForceFallback,
  kCount,
};
inline constexpr uint32_t kOptionCount = static_cast<uint32_t>(Option::kCount);

struct OptionInfo {
  Option option;
  const char* flag;      // "size": --size, size = in TOML
  const char* variable;  // "SLUICE_SIZE"
  OptionKind kind;
  bool autos;                // "auto" is accepted in addition to the kind's values
  const char* choices;       // kChoice: "a|b|c"
  uint64_t low, high;        // kNumber, kBytes: inclusive bounds
  const char* default_text;  // as a user would write it; "": unset
  const char* help;          // one line, no full stop
  bool common = false;       // one of the few that most users need: shown by --help and README
};

inline constexpr uint64_t kNoLimit = UINT64_MAX;

inline constexpr OptionInfo kOptions[] = {
    {Option::kDataset, "dataset", "SLUICE_DATASET", OptionKind::kPaths, false, "", 0, 0, "",
     "colon-separated files, folders or globs that are data; LMDB files are recognised without "
     "it; `auto` adds every read-only file of at least 256 MiB, "
     "on a network or FUSE mount of 16 MiB",
     true},
    {Option::kDistance, "distance", "SLUICE_DISTANCE", OptionKind::kBytes, true, "", 65536,
     1ULL << 40, "auto", "bytes between checkpoints"},
    {Option::kSize, "size", "SLUICE_SIZE", OptionKind::kBytes, true, "", 65536, 1ULL << 40, "auto",
     "bytes that one pre-cache reads ahead"},
    {Option::kThreshold, "threshold", "SLUICE_THRESHOLD", OptionKind::kNumber, false, "", 1, 100,
     "75", "percent of the pre-cached size at which the next pre-cache begins"},
    {Option::kCheckpoint, "checkpoint", "SLUICE_CHECKPOINT", OptionKind::kChoice, false,
     "auto|cell|page|observe|off", 0, 0, "auto",
     "how accesses to mapped files are detected: cells for LMDB and observation for the rest "
     "(auto), one of them, or not at all"},
    {Option::kPrefetch, "prefetch", "SLUICE_PREFETCH", OptionKind::kSwitch, false, "", 0, 0, "on",
     "off: detect only, never prefetch"},
    {Option::kMemory, "memory", "SLUICE_MEMORY", OptionKind::kBytes, true, "", 1 << 20, kNoLimit,
     "auto",
     "byte budget for staged and pre-cached data; auto is 20 % of what the memory cgroup leaves",
     true},
    {Option::kStage, "stage", "SLUICE_STAGE", OptionKind::kChoice, false, "auto|always|never", 0, 0,
     "auto",
     "which sample files are copied to memory before they are opened: those on network or FUSE "
     "mounts, all, or none"},
    {Option::kStale, "stale", "SLUICE_STALE", OptionKind::kNumber, false, "", 0, 86400, "3",
     "seconds until a change made on another host is noticed in a staged file"},
    {Option::kPolicy, "policy", "SLUICE_POLICY", OptionKind::kChoice, false,
     "auto|lru|lfu|fifo|minio|quiver|shade|belady|needed|lcache|brand|pool", 0, 0, "auto",
     "replacement policy for staged files that do not all fit the budget; lcache: auto, and what "
     "leaves memory is read from cache-dir, where it lies in the order of the next epoch; brand "
     "and pool, with substitute: samples are read in chunks, files from cache-dir (`sluice "
     "chunks`), records as ranges of their file"},
    {Option::kSubstitute, "substitute", "SLUICE_SUBSTITUTE", OptionKind::kChoice, false,
     "never|any", 0, 0, "never",
     "any: with policy brand or pool an epoch of a PyTorch job trains each sample once, in an "
     "order that chunks decide"},
    {Option::kImportance, "importance", "SLUICE_IMPORTANCE", OptionKind::kImportance, false, "", 0,
     0, "off",
     "what a PyTorch job trains on: all samples (off); all, recording each sample's loss "
     "(loss); or, after some epochs, the more important ones by loss (iis), which changes what "
     "is trained",
     true},
    {Option::kCacheDir, "cache-dir", "SLUICE_CACHE_DIR", OptionKind::kText, false, "", 0, 0, "",
     "folder on a fast disk for packs of fetched samples, which are read there instead of from "
     "their storage again, and for staged files that do not fit a memory file system",
     true},
    {Option::kPacks, "packs", "SLUICE_PACKS", OptionKind::kBytes, false, "", 0, kNoLimit, "16G",
     "bytes that packs, or the log of policy=lcache, may take in the cache folder; 0: none"},
    {Option::kPlaces, "places", "SLUICE_PLACES", OptionKind::kText, false, "", 0, 0, "",
     "absolute folder that stores, for the next run, the locations of datasets' samples and what "
     "commands open as they start; `off`: none, empty: `sluice` in the user's cache folder"},
    {Option::kSocket, "socket", "SLUICE_SOCKET", OptionKind::kText, false, "", 0, 0, "",
     "socket of the optimizer; empty: one per user, memory cgroup and mount namespace"},
    {Option::kLinger, "linger", "SLUICE_LINGER", OptionKind::kNumber, false, "", 0, 86400, "60",
     "seconds that the optimizer keeps running after its last job"},
    {Option::kPatience, "patience", "SLUICE_PATIENCE", OptionKind::kNumber, false, "", 100, 30000,
     "500",
     "milliseconds that a process waits in all for an optimizer that does not answer, before it "
     "does without; half of it for one answer, during which signals wait, too"},
    {Option::kLog, "log", "SLUICE_LOG", OptionKind::kChoice, false,
     "off|error|warn|info|debug|trace", 0, 0, "warn",
     "log level; the end-of-run line is printed at warn and above", true},
    {Option::kReport, "report", "SLUICE_REPORT", OptionKind::kText, false, "", 0, 0, "",
     "file for the end-of-run figures of all processes of a job, as JSON", true},
    {Option::kRecord, "record", "SLUICE_RECORD", OptionKind::kText, false, "", 0, 0, "",
     "file for the trace of the job's samples, for `sluice simulate`; overwritten, or appended "
     "to with a leading +"},
    {Option::kOff, "off", "SLUICE_OFF", OptionKind::kSwitch, false, "", 0, 0, "off",
     "on: disable Sluice", true},
    {Option::kPython, "python", "SLUICE_PYTHON", OptionKind::kSwitch, false, "", 0, 0, "on",
     "off: no PyTorch adapter in Python programs"},
    {Option::kCallsites, "callsites", "SLUICE_CALLSITES", OptionKind::kSwitch, false, "", 0, 0,
     "off", "on: attribute bytes read to the code that first touched them"},
    {Option::kCrashTrace, "crash-trace", "SLUICE_CRASH_TRACE", OptionKind::kSwitch, false, "", 0, 0,
     "off", "on: print a backtrace on a real crash before forwarding it"},
    {Option::kConfig, "config", "SLUICE_CONFIG", OptionKind::kText, false, "", 0, 0, "",
     "TOML file with these options", true},
    {Option::kForceFallback, "force-fallback", "SLUICE_FORCE_FALLBACK", OptionKind::kText, false,
     "", 0, 0, "",
     "for tests: comma-separated noguard, nocachestat, nopagemapscan, nouring; emulates an "
     "older kernel"},
};
static_assert(sizeof(kOptions) / sizeof(kOptions[0]) == kOptionCount);

constexpr const OptionInfo& option_info(Option option) {
  return kOptions[static_cast<uint32_t>(option)];
}

// The option whose flag is the `length` characters, or nullptr.
inline const OptionInfo* find_option(const char* flag, size_t length) {
  for (const OptionInfo& info : kOptions) {
    if (strlen(info.flag) == length && memcmp(info.flag, flag, length) == 0) return &info;
  }
  return nullptr;
}

// Of the environment variables with this prefix only the options' and kOwnVariables are Sluice's.
inline constexpr char kVariablePrefix[] = "SLUICE_";
// Variables by which Sluice's parts communicate; not for users.
inline constexpr const char* kOwnVariables[] = {"SLUICE_JOB", "SLUICE_PYTHONPATH_WAS"};

// The option whose variable was probably meant by `name`, of `length` characters: it begins with
// the prefix, is no variable of Sluice, but similar to one. nullptr: none.
const OptionInfo* misspelled_variable(const char* name, size_t length);

// Parses "8M", "50m", "1.5G", "4096"; "MiB", "MB" and "M" are the same. A fraction of a byte is
// truncated. False for anything else and on overflow; *bytes is then unchanged. REQUIRES: text is
// NUL-terminated.
bool parse_bytes(const char* text, uint64_t* bytes);

// Parses a kSwitch value. False, with *on unchanged, if it is none; nor is the empty text one.
bool parse_switch(const char* text, bool* on);

// Checks a value against its option. Returns nullptr if it is valid, else the reason, a static
// string such as "is not a size such as 50M"; `value` must then not be used.
const char* option_problem(const OptionInfo& info, const char* value);

}  // namespace sluice::protocol
