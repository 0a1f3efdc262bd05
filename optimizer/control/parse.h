// Parses and checks everything that a client sends. Pure functions over bytes: whatever the input,
// the result is a value or a one-line error. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "policy/chunks/chunk_supply.h"
#include "policy/importance/book.h"
#include "policy/replacement/table.h"
#include "protocol/control.h"
#include "protocol/ring_io.h"

namespace sluice::optimizer {

// The options that a session requested. 0 means "auto" for sizes.
struct SessionOptions {
  uint64_t distance = 0;    // bytes
  uint64_t size = 0;        // bytes
  uint32_t threshold = 75;  // percent, 1 to 100
  bool prefetch = true;
  uint64_t memory = 0;             // bytes
  std::optional<uint32_t> linger;  // seconds
  std::string log;                 // level; empty: unchanged
  bool no_cachestat = false;       // force-fallback
  bool no_pagemap_scan = false;
  bool no_uring = false;
  enum class Stage : uint8_t { kAuto, kAlways, kNever };
  Stage stage = Stage::kAuto;
  uint32_t stale = 3;                             // seconds
  std::optional<policy::PolicyKind> policy;       // nullopt: the default
  bool logs = false;                              // policy is lcache: the default one in memory
  std::optional<policy::ChunkSystemKind> chunks;  // policy is brand or pool
  bool substitutes = false;                       // which may decide the order of samples
  std::string cache_dir;                          // empty: none
  uint64_t packs = 16ULL << 30;                   // bytes
  std::string places;                             // folder; empty: none
  bool selects = false;                           // importance is iis
  policy::ImportanceOptions importance;

  bool decides_order() const { return chunks && substitutes && !selects; }
  bool reads_packages() const {
    using Substitution = policy::ImportanceOptions::Substitution;
    return selects && importance.packages && !cache_dir.empty() &&
           importance.substitution == Substitution::kAny;
  }
};

struct HelloMessage {
  uint32_t pid = 0;
  SessionOptions options;
  std::vector<std::string> problems;  // options ignored, one line each
};
struct FileMessage {
  protocol::File file{};
  std::string path;  // display only, control characters replaced
};
struct ByeMessage {
  protocol::Bye bye{};
};
struct DatasetMessage {
  protocol::Dataset dataset{};
  std::string name;  // control characters replaced
};
// kOrder. `count` is within the limit for one memfd; indices are not checked yet.
struct SamplesMessage {
  protocol::Samples samples{};
};
// kLocate, kLocateExtents, kLocateKeys. `count` and `bytes` are within the limits for one memfd,
// whose content is not checked yet.
struct LocateMessage {
  protocol::MessageKind kind = protocol::MessageKind::kLocate;
  protocol::Samples samples{};
};
// kImportance, kSelect, kDeliver. `count` and `bytes` are within the limits for one memfd, whose
// content is not checked yet.
struct ImportanceMessage {
  protocol::MessageKind kind = protocol::MessageKind::kImportance;
  protocol::Samples samples{};
};
// kSeen: the files that were opened while samples were read.
struct SeenMessage {
  protocol::Samples samples{};
  std::vector<std::pair<uint32_t, std::string>> files;  // sample's number, absolute path
};
// kFileUse
struct FileUseMessage {
  protocol::UsedFile used{};
  std::string path;  // absolute
};
// kListed
struct ListedMessage {
  protocol::Listed listed{};
};
struct StartMessage {
  protocol::Start start{};
  std::string command;  // identifies it; any bytes but NUL
};
// kStarted. `count` and `bytes` are within the limits for one memfd, whose content is not checked
// yet.
struct StartedMessage {
  protocol::Samples samples{};
};
// kTakeFile
struct TakeMessage {
  protocol::TakeFile take{};
  std::string path;  // absolute
};
struct CloseAheadMessage {
  protocol::Start start{};
};
struct StageMessage {
  protocol::StageAsked stage{};
};
struct SettleMessage {
  protocol::Settle settle{};
};
struct RecordMessage {
  protocol::Record record{};
};
struct StatusMessage {};
struct StopMessage {};
struct BadMessage {
  std::string reason;  // one line
};
using Message =
    std::variant<BadMessage, HelloMessage, FileMessage, ByeMessage, StatusMessage, StopMessage,
                 DatasetMessage, SamplesMessage, LocateMessage, SeenMessage, FileUseMessage,
                 StageMessage, SettleMessage, RecordMessage, ImportanceMessage, ListedMessage,
                 StartMessage, StartedMessage, TakeMessage, CloseAheadMessage>;

// One packet of the control socket.
Message parse_packet(std::span<const std::byte> packet);

// The "name=value\n" text of a hello. Unknown names and bad values are reported and ignored.
SessionOptions parse_options(std::string_view text, std::vector<std::string>* problems);

// Parses `count` absolute paths, each ended by a NUL. False: `text` is malformed. `gaps`: paths may
// be empty.
bool parse_paths(std::string_view text, uint64_t count, std::vector<std::string_view>* paths,
                 bool gaps = false);

// Parses `count` lengths and then the keys, the format of kLocateKeys. False: `text` is malformed.
bool parse_keys(std::string_view text, uint64_t count, std::vector<std::string_view>* keys);

// True if the event is plausible for a file of `file_size` bytes (0: not known yet).
bool event_is_sane(const protocol::EventData& event, uint64_t file_size);

// Shortens to `limit` bytes and replaces control characters by '?'.
std::string printable(std::string_view text, size_t limit);

}  // namespace sluice::optimizer
