// The value of SLUICE_IMPORTANCE: a mode and its parameters, "iis:share=50,warmup=5". This table of
// keys is the only one: for the library, the optimizer and the documents.
//
// Freestanding: no allocation, no locale, usable before main and in any process.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::protocol {

enum class ImportanceMode : uint8_t { kOff, kLoss, kIis };

enum class ImportanceKey : uint8_t {
  kShare,
  kWarmUp,
  kFullEvery,
  kBeta,
  kHistory,
  kHShare,
  kSubstitute,
  kMostSubstituted,
  kPackages,
  kSeed,
  kCount,
};
inline constexpr size_t kImportanceKeyCount = static_cast<size_t>(ImportanceKey::kCount);

struct ImportanceKeyInfo {
  ImportanceKey key;
  const char* name;
  const char* choices;       // "a|b|c": the value is a choice's index; "": a whole number
  uint64_t low, high;        // of a number, inclusive
  uint64_t value;            // the default
  const char* default_text;  // the default as a user would write it, or in a few words
  const char* help;          // one line, no full stop
};

inline constexpr uint64_t kMostEpochs = 1'000'000;
inline constexpr ImportanceKeyInfo kImportanceKeys[] = {
    {ImportanceKey::kShare, "share", "", 1, 100, 0, "by percentile",
     "percent of the samples that an epoch fetches, with probability proportional to loss; "
     "without it, a sample's probability is the percentile of its loss"},
    {ImportanceKey::kWarmUp, "warmup", "", 0, kMostEpochs, 5, "5",
     "initial epochs that fetch all samples"},
    {ImportanceKey::kFullEvery, "full-every", "", 0, kMostEpochs, 3, "3",
     "afterwards, every Nth epoch fetches all samples; 0: none"},
    {ImportanceKey::kBeta, "beta", "", 0, 10000, 100, "100",
     "power of the percentile, in hundredths; a higher one fetches fewer"},
    {ImportanceKey::kHistory, "history", "", 1, 1'000'000, 1024, "1024",
     "number of recent losses for the percentile"},
    {ImportanceKey::kHShare, "h-share", "", 0, 100, 70, "70",
     "percent of the fetched samples that are important (H-samples): never substituted, and "
     "retained first if the next epoch will fetch them"},
    {ImportanceKey::kSubstitute, "substitute", "never|class|any", 0, 0, 0, "never",
     "substitute for an unimportant sample (L-sample) that is not in memory: any that is, one "
     "of its class, or never"},
    {ImportanceKey::kMostSubstituted, "most-substituted", "", 0, 100, 12, "12",
     "most percent of an epoch's samples that may be substituted"},
    {ImportanceKey::kPackages, "packages", "auto|off", 0, 0, 0, "auto",
     "read L-samples that are to substitute in packages: with substitute=any, where chunks of all "
     "samples are in cache-dir (`sluice chunks make`)"},
    {ImportanceKey::kSeed, "seed", "", 0, UINT64_MAX, 1, "the job's own",
     "seed of the selection; the job's own is `torch.initial_seed()` of the first rank that "
     "trains, and 1 for programs that declare none"},
};
static_assert(sizeof kImportanceKeys / sizeof *kImportanceKeys == kImportanceKeyCount);

struct Importance {
  ImportanceMode mode = ImportanceMode::kOff;
  uint64_t values[kImportanceKeyCount] = {};
  bool given[kImportanceKeyCount] = {};

  uint64_t value(ImportanceKey key) const { return values[static_cast<size_t>(key)]; }
  bool has(ImportanceKey key) const { return given[static_cast<size_t>(key)]; }
};

// Returns nullptr and sets *importance if `text` is valid. Else the reason, a static string such as
// "has a key without a value"; *importance is then `off`. REQUIRES: text is NUL-terminated.
const char* parse_importance(const char* text, Importance* importance);

}  // namespace sluice::protocol
