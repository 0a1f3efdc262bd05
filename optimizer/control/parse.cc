#include "optimizer/control/parse.h"

#include <cstring>

#include "protocol/importance.h"
#include "protocol/options.h"

namespace sluice::optimizer {

using policy::find_policy;
using policy::ImportanceOptions;
using policy::PolicyInfo;
namespace {

using protocol::MessageHeader;
using protocol::MessageKind;

constexpr uint64_t kMaxOffset = 1ULL << 62;
constexpr size_t kMaxProblems = 8;
constexpr uint64_t kMaxOrder = 1ULL << 25;  // positions of an epoch
constexpr uint64_t kMaxPlaces = 1 << 22;    // samples in one message of locations
constexpr uint64_t kMaxPaths = 32 << 20;    // bytes of locations in one message
constexpr size_t kLongestPath = 4095;       // bytes; the kernel's PATH_MAX without the NUL

template <typename Body>
bool take(std::span<const std::byte>& bytes, Body* body) {
  if (bytes.size() < sizeof(Body)) return false;
  memcpy(body, bytes.data(), sizeof(Body));
  bytes = bytes.subspan(sizeof(Body));
  return true;
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

uint64_t bytes_or_auto(const std::string& value) {
  uint64_t bytes = 0;
  return protocol::parse_bytes(value.c_str(), &bytes) ? bytes : 0;
}

uint32_t number(const std::string& value) {
  return static_cast<uint32_t>(strtoul(value.c_str(), nullptr, 10));
}

bool on(const std::string& value) {
  bool is_on = false;
  return protocol::parse_switch(value.c_str(), &is_on) && is_on;
}

void apply_fallbacks(std::string_view list, SessionOptions* options) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    const std::string_view word = list.substr(0, comma);
    options->no_cachestat |= word == "nocachestat";
    options->no_pagemap_scan |= word == "nopagemapscan";
    options->no_uring |= word == "nouring";
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
}

ImportanceOptions importance_options(const protocol::Importance& chosen) {
  using Key = protocol::ImportanceKey;
  using Substitution = ImportanceOptions::Substitution;
  static constexpr Substitution kSubstitutions[] = {Substitution::kNever, Substitution::kSameLabel,
                                                    Substitution::kAny};
  const auto hundredths = [&chosen](Key key) {
    return static_cast<double>(chosen.value(key)) / 100.0;
  };
  ImportanceOptions options;
  options.selector = chosen.has(Key::kShare) ? "share" : "loss";
  options.selection = {.warm_up = static_cast<uint32_t>(chosen.value(Key::kWarmUp)),
                       .full_every = static_cast<uint32_t>(chosen.value(Key::kFullEvery)),
                       .beta = hundredths(Key::kBeta),
                       .history = static_cast<uint32_t>(chosen.value(Key::kHistory)),
                       .share = hundredths(Key::kShare),
                       .seed = chosen.value(Key::kSeed)};
  options.seed_given = chosen.has(Key::kSeed);
  options.h_share = hundredths(Key::kHShare);
  options.substitution = kSubstitutions[chosen.value(Key::kSubstitute)];
  options.most_substituted = hundredths(Key::kMostSubstituted);
  return options;
}

void apply(protocol::Option option, const std::string& value, SessionOptions* options) {
  switch (option) {
    case protocol::Option::kDistance:
      options->distance = bytes_or_auto(value);
      break;
    case protocol::Option::kSize:
      options->size = bytes_or_auto(value);
      break;
    case protocol::Option::kThreshold:
      options->threshold = number(value);
      break;
    case protocol::Option::kPrefetch:
      options->prefetch = on(value);
      break;
    case protocol::Option::kMemory:
      options->memory = bytes_or_auto(value);
      break;
    case protocol::Option::kLinger:
      options->linger = number(value);
      break;
    case protocol::Option::kLog:
      options->log = value;
      break;
    case protocol::Option::kStage:
      options->stage = value == "always"  ? SessionOptions::Stage::kAlways
                       : value == "never" ? SessionOptions::Stage::kNever
                                          : SessionOptions::Stage::kAuto;
      break;
    case protocol::Option::kStale:
      options->stale = number(value);
      break;
    case protocol::Option::kPolicy:
      if (const PolicyInfo* info = find_policy(value)) options->policy = info->kind;
      break;
    case protocol::Option::kCacheDir:
      options->cache_dir = value;
      break;
    case protocol::Option::kPacks:
      options->packs = bytes_or_auto(value);
      break;
    case protocol::Option::kPlaces:
      options->places = value == "off" ? "" : value;
      break;
    case protocol::Option::kImportance: {
      protocol::Importance chosen;
      protocol::parse_importance(value.c_str(), &chosen);
      options->selects = chosen.mode == protocol::ImportanceMode::kIis;
      options->importance = importance_options(chosen);
      break;
    }
    case protocol::Option::kForceFallback:
      apply_fallbacks(value, options);
      break;
    default:  // used by the library only
      break;
  }
}

const protocol::OptionInfo* find_option(std::string_view name) {
  for (const protocol::OptionInfo& info : protocol::kOptions) {
    if (name == info.flag) return &info;
  }
  return nullptr;
}

}  // namespace

bool parse_paths(std::string_view text, uint64_t count, std::vector<std::string_view>* paths,
                 bool gaps) {
  paths->clear();
  for (uint64_t i = 0; i < count; ++i) {
    const size_t end = text.find('\0');
    if (end > kLongestPath || (text.front() != '/' && !(gaps && end == 0))) {
      return false;
    }
    paths->push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return true;
}

bool parse_keys(std::string_view text, uint64_t count, std::vector<std::string_view>* keys) {
  keys->clear();
  if (count > text.size() / sizeof(uint32_t)) return false;
  std::string_view rest = text.substr(count * sizeof(uint32_t));
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t length = 0;
    memcpy(&length, text.data() + i * sizeof length, sizeof length);
    if (length > rest.size()) return false;
    keys->push_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  return rest.empty();
}

std::string printable(std::string_view text, size_t limit) {
  std::string out(text.substr(0, limit));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return out;
}

SessionOptions parse_options(std::string_view text, std::vector<std::string>* problems) {
  SessionOptions options;
  const auto report = [problems](std::string line) {
    if (problems->size() < kMaxProblems) problems->push_back(std::move(line));
  };
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (line.empty()) continue;
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) {
      report("option without a value: " + printable(line, 64));
      continue;
    }
    const protocol::OptionInfo* info = find_option(line.substr(0, equals));
    const std::string value(line.substr(equals + 1));
    if (info == nullptr) {
      report("unknown option: " + printable(line.substr(0, equals), 64));
    } else if (value.find('\0') != std::string::npos) {
      report(std::string(info->flag) + ": holds a zero byte");
    } else if (const char* problem = protocol::option_problem(*info, value.c_str())) {
      report(std::string(info->flag) + ": " + printable(value, 64) + " " + problem);
    } else {
      apply(info->option, value, &options);
    }
  }
  return options;
}

namespace {

// A message of each kind from what follows its header.
using Packet = std::span<const std::byte>;

Message hello_of(Packet packet) {
  protocol::Hello body{};
  if (!take(packet, &body)) return BadMessage{"hello too short"};
  HelloMessage hello;
  hello.pid = body.pid;
  hello.options = parse_options(text_of(packet), &hello.problems);
  return hello;
}

Message file_of(Packet packet) {
  FileMessage file;
  if (!take(packet, &file.file)) return BadMessage{"file message too short"};
  file.path = printable(text_of(packet), protocol::kMaxPath);
  if (file.file.size > kMaxOffset) return BadMessage{"file size out of range"};
  return file;
}

Message dataset_of(Packet packet) {
  DatasetMessage dataset;
  if (!take(packet, &dataset.dataset)) return BadMessage{"dataset message too short"};
  const uint64_t samples = dataset.dataset.samples;
  if (samples == 0 || samples > protocol::kMaxSamples) {
    return BadMessage{"a dataset of " + std::to_string(samples) + " samples"};
  }
  dataset.name = printable(text_of(packet), protocol::kMaxPath);
  return dataset;
}

Message order_of(Packet packet) {
  SamplesMessage order;
  if (!take(packet, &order.samples)) return BadMessage{"order too short"};
  if (order.samples.count > kMaxOrder || order.samples.first > kMaxOrder) {
    return BadMessage{"order too long"};
  }
  return order;
}

Message locate_of(MessageKind kind, Packet packet) {
  LocateMessage locate{kind, {}};
  if (!take(packet, &locate.samples)) return BadMessage{"places too short"};
  const protocol::Samples& request = locate.samples;
  if (request.count > kMaxPlaces || request.first > protocol::kMaxSamples ||
      request.bytes > kMaxPaths) {
    return BadMessage{"too many places at once"};
  }
  if (kind == MessageKind::kLocate &&
      (request.each < 1 || request.each > protocol::kMostFilesEach)) {
    return BadMessage{"samples of " + std::to_string(request.each) + " files"};
  }
  const bool extents = kind == MessageKind::kLocateExtents;
  if (extents && request.bytes != request.count * sizeof(protocol::Place)) {
    return BadMessage{"places that are no places"};
  }
  return locate;
}

Message importance_of(MessageKind kind, Packet packet) {
  ImportanceMessage message{kind, {}};
  if (!take(packet, &message.samples)) return BadMessage{"importance too short"};
  const protocol::Samples& request = message.samples;
  const uint64_t each = kind == MessageKind::kImportance ? sizeof(protocol::SampleImportance)
                        : kind == MessageKind::kDeliver  ? sizeof(uint32_t)
                                                         : 1;
  const uint64_t most = kind == MessageKind::kDeliver ? protocol::kMostDelivered : kMaxOrder;
  if (request.count > most || request.bytes != request.count * each) {
    return BadMessage{"invalid importance"};
  }
  return message;
}

Message seen_of(Packet packet) {
  SeenMessage seen;
  if (!take(packet, &seen.samples)) return BadMessage{"places too short"};
  for (uint64_t i = 0; i < seen.samples.count; ++i) {
    uint32_t sample = 0;
    std::vector<std::string_view> path;
    if (!take(packet, &sample) || !parse_paths(text_of(packet), 1, &path)) {
      return BadMessage{"invalid locations"};
    }
    seen.files.emplace_back(sample, path.front());
    packet = packet.subspan(path.front().size() + 1);
  }
  return seen;
}

Message file_use_of(Packet packet) {
  FileUseMessage use;
  std::vector<std::string_view> path;
  if (!take(packet, &use.used) || !parse_paths(text_of(packet), 1, &path)) {
    return BadMessage{"invalid use of a file"};
  }
  use.path = path.front();
  return use;
}

// A message that is its body and nothing else.
template <typename Kind, typename Body>
Message plain_of(Packet packet, Body Kind::*body, const char* too_short) {
  Kind message;
  if (!take(packet, &(message.*body))) return BadMessage{too_short};
  return message;
}

}  // namespace

Message parse_packet(std::span<const std::byte> packet) {
  MessageHeader header;
  if (packet.size() > protocol::kMaxPacket) return BadMessage{"packet too long"};
  if (!take(packet, &header)) return BadMessage{"packet too short"};
  if (header.magic != protocol::kControlMagic) return BadMessage{"not a sluice message"};
  if (header.version != protocol::kVersion) {
    return BadMessage{"protocol version " + std::to_string(header.version) +
                      " is not this optimizer's " + std::to_string(protocol::kVersion)};
  }
  switch (header.kind) {
    case MessageKind::kHello:
      return hello_of(packet);
    case MessageKind::kFile:
      return file_of(packet);
    case MessageKind::kBye:
      return plain_of(packet, &ByeMessage::bye, "bye too short");
    case MessageKind::kDataset:
      return dataset_of(packet);
    case MessageKind::kOrder:
      return order_of(packet);
    case MessageKind::kLocate:
    case MessageKind::kLocateExtents:
    case MessageKind::kLocateKeys:
      return locate_of(header.kind, packet);
    case MessageKind::kImportance:
    case MessageKind::kSelect:
    case MessageKind::kDeliver:
      return importance_of(header.kind, packet);
    case MessageKind::kSeen:
      return seen_of(packet);
    case MessageKind::kFileUse:
      return file_use_of(packet);
    case MessageKind::kStage:
      return plain_of(packet, &StageMessage::stage, "stage message too short");
    case MessageKind::kSettle:
      return plain_of(packet, &SettleMessage::settle, "settle message too short");
    case MessageKind::kRecord:
      return plain_of(packet, &RecordMessage::record, "record message too short");
    case MessageKind::kStatus:
      return StatusMessage{};
    case MessageKind::kStop:
      return StopMessage{};
    default:
      return BadMessage{"unknown message kind"};
  }
}

bool event_is_sane(const protocol::EventData& event, uint64_t file_size) {
  using protocol::EventKind;
  const auto kind = static_cast<uint16_t>(event.kind);
  if (kind < static_cast<uint16_t>(EventKind::kTrip) ||
      kind > static_cast<uint16_t>(EventKind::kSamplePart)) {
    return false;
  }
  if (event.offset > kMaxOffset || event.length > kMaxOffset) return false;
  switch (event.kind) {
    case EventKind::kTrip:
    case EventKind::kRead:
      // A file may have grown since it was opened: an event past the known size is accepted as long
      // as it begins within twice that size.
      return event.length > 0 && (file_size == 0 || event.offset / 2 <= file_size);
    case EventKind::kMapped:
      return event.length > 0 && event.address % 4096 == 0 && event.offset % 4096 == 0 &&
             event.address < kMaxOffset && event.length < kMaxOffset - event.address;
    default:
      return true;
  }
}

}  // namespace sluice::optimizer
