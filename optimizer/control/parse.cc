#include "optimizer/control/parse.h"

#include <cstring>

namespace sluice::optimizer {

namespace {

using protocol::MessageHeader;
using protocol::MessageKind;

constexpr uint64_t kMaxOffset = 1ULL << 62;
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

Message start_of(Packet packet) {
  StartMessage start;
  if (!take(packet, &start.start)) return BadMessage{"start message too short"};
  start.command = text_of(packet).substr(0, protocol::kMaxPath);
  return start;
}

Message take_of(Packet packet) {
  TakeMessage message;
  std::vector<std::string_view> path;
  if (!take(packet, &message.take) || !parse_paths(text_of(packet), 1, &path)) {
    return BadMessage{"invalid path to be taken"};
  }
  message.path = path.front();
  return message;
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
  const auto [ranks, on_host] = request.ranks;
  const bool is_rank = request.rank < ranks && on_host != 0 && on_host <= ranks;
  if (kind != MessageKind::kImportance && !is_rank && (request.rank != 0 || ranks != 0)) {
    return BadMessage{"invalid rank"};
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
    case MessageKind::kStart:
      return start_of(packet);
    case MessageKind::kStarted:
      return plain_of(packet, &StartedMessage::samples, "started message too short");
    case MessageKind::kTakeFile:
      return take_of(packet);
    case MessageKind::kCloseAhead:
      return plain_of(packet, &CloseAheadMessage::start, "close message too short");
    case MessageKind::kListed:
      return plain_of(packet, &ListedMessage::listed, "listed message too short");
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
