// `sluice docs layout`: the tables of docs/protocol.md that a compiler knows better than a writer.
#include <fmt/format.h>

#include <cstddef>
#include <cstdio>
#include <span>
#include <string>

#include "cli/docs.h"
#include "cli/program.h"
#include "protocol/control.h"
#include "protocol/pack.h"
#include "protocol/ring.h"
#include "protocol/stage.h"
#include "protocol/trace.h"

namespace sluice::cli {
namespace {

using namespace sluice::protocol;

struct Field {
  size_t offset;
  size_t size;
  const char* name;
};

std::string table(const char* name, size_t size, std::initializer_list<Field> fields) {
  std::string text =
      fmt::format("\n`{}`, {} bytes:\n\n| offset | bytes | field |\n|---|---|---|\n", name, size);
  for (const Field& field : fields) {
    text += fmt::format("| {} | {} | `{}` |\n", field.offset, field.size, field.name);
  }
  return text;
}

// What is made of words of 8 bytes, one for each line of a table of fields.
std::string words(const char* name, std::span<const MetricInfo> fields) {
  std::string text = fmt::format("\n{}, {} bytes:\n\n| offset | bytes | field |\n|---|---|---|\n",
                                 name, 8 * fields.size());
  for (size_t at = 0; at < fields.size(); ++at) {
    text += fmt::format("| {} | 8 | `{}` |\n", 8 * at, fields[at].name);
  }
  return text;
}

#define SLUICE_FIELD(type, field) \
  { offsetof(type, field), sizeof(type::field), #field }

std::string messages() {
  return table("MessageHeader", sizeof(MessageHeader),
               {SLUICE_FIELD(MessageHeader, magic), SLUICE_FIELD(MessageHeader, version),
                SLUICE_FIELD(MessageHeader, kind), SLUICE_FIELD(MessageHeader, more)}) +
         table("Hello", sizeof(Hello), {SLUICE_FIELD(Hello, pid), SLUICE_FIELD(Hello, reserved)}) +
         table("Welcome", sizeof(Welcome),
               {SLUICE_FIELD(Welcome, session), SLUICE_FIELD(Welcome, token),
                SLUICE_FIELD(Welcome, size)}) +
         table("File", sizeof(File),
               {SLUICE_FIELD(File, session), SLUICE_FIELD(File, token), SLUICE_FIELD(File, device),
                SLUICE_FIELD(File, inode), SLUICE_FIELD(File, size), SLUICE_FIELD(File, mapped),
                SLUICE_FIELD(File, checkpoint)}) +
         table("FileKnown", sizeof(FileKnown),
               {SLUICE_FIELD(FileKnown, file), SLUICE_FIELD(FileKnown, flags),
                SLUICE_FIELD(FileKnown, distance)}) +
         table("Bye", sizeof(Bye), {SLUICE_FIELD(Bye, session), SLUICE_FIELD(Bye, token)}) +
         table("Dataset", sizeof(Dataset),
               {SLUICE_FIELD(Dataset, session), SLUICE_FIELD(Dataset, token),
                SLUICE_FIELD(Dataset, samples)}) +
         table("DatasetKnown", sizeof(DatasetKnown),
               {SLUICE_FIELD(DatasetKnown, dataset), SLUICE_FIELD(DatasetKnown, reserved)}) +
         table("Samples", sizeof(Samples),
               {SLUICE_FIELD(Samples, session), SLUICE_FIELD(Samples, token),
                SLUICE_FIELD(Samples, first), SLUICE_FIELD(Samples, count),
                SLUICE_FIELD(Samples, bytes), SLUICE_FIELD(Samples, dataset),
                SLUICE_FIELD(Samples, epoch), SLUICE_FIELD(Samples, whole),
                SLUICE_FIELD(Samples, file), SLUICE_FIELD(Samples, group)}) +
         table("StageAsked", sizeof(StageAsked),
               {SLUICE_FIELD(StageAsked, session), SLUICE_FIELD(StageAsked, token)}) +
         table("Settle", sizeof(Settle),
               {SLUICE_FIELD(Settle, session), SLUICE_FIELD(Settle, token),
                SLUICE_FIELD(Settle, device), SLUICE_FIELD(Settle, inode),
                SLUICE_FIELD(Settle, mapped), SLUICE_FIELD(Settle, reserved)}) +
         table("Record", sizeof(Record),
               {SLUICE_FIELD(Record, session), SLUICE_FIELD(Record, token)});
}

std::string stage() {
  return table("Stage", sizeof(Stage),
               {SLUICE_FIELD(Stage, header), SLUICE_FIELD(Stage, buckets),
                SLUICE_FIELD(Stage, files)}) +
         table("StageHeader", sizeof(StageHeader),
               {SLUICE_FIELD(StageHeader, magic), SLUICE_FIELD(StageHeader, version),
                SLUICE_FIELD(StageHeader, size), SLUICE_FIELD(StageHeader, secret),
                SLUICE_FIELD(StageHeader, identity), SLUICE_FIELD(StageHeader, copy_device),
                SLUICE_FIELD(StageHeader, process_inode), SLUICE_FIELD(StageHeader, process),
                SLUICE_FIELD(StageHeader, watch_fd), SLUICE_FIELD(StageHeader, folder),
                SLUICE_FIELD(StageHeader, heartbeat_ns), SLUICE_FIELD(StageHeader, files),
                SLUICE_FIELD(StageHeader, closed), SLUICE_FIELD(StageHeader, draining),
                SLUICE_FIELD(StageHeader, devices)}) +
         table("AccessIdentity", sizeof(AccessIdentity),
               {SLUICE_FIELD(AccessIdentity, root_device), SLUICE_FIELD(AccessIdentity, root_inode),
                SLUICE_FIELD(AccessIdentity, mounts), SLUICE_FIELD(AccessIdentity, users),
                SLUICE_FIELD(AccessIdentity, groups), SLUICE_FIELD(AccessIdentity, capabilities),
                SLUICE_FIELD(AccessIdentity, user), SLUICE_FIELD(AccessIdentity, group)}) +
         table("StageFile", sizeof(StageFile),
               {SLUICE_FIELD(StageFile, sequence), SLUICE_FIELD(StageFile, state),
                SLUICE_FIELD(StageFile, words)}) +
         table("StageCopy", sizeof(StageCopy),
               {SLUICE_FIELD(StageCopy, key), SLUICE_FIELD(StageCopy, name),
                SLUICE_FIELD(StageCopy, validated_ns), SLUICE_FIELD(StageCopy, stat),
                SLUICE_FIELD(StageCopy, flags), SLUICE_FIELD(StageCopy, copy_inode)}) +
         table("StageStat", sizeof(StageStat),
               {SLUICE_FIELD(StageStat, device),
                SLUICE_FIELD(StageStat, inode),
                SLUICE_FIELD(StageStat, rdevice),
                SLUICE_FIELD(StageStat, size),
                SLUICE_FIELD(StageStat, blocks),
                SLUICE_FIELD(StageStat, accessed_s),
                SLUICE_FIELD(StageStat, modified_s),
                SLUICE_FIELD(StageStat, changed_s),
                SLUICE_FIELD(StageStat, born_s),
                SLUICE_FIELD(StageStat, accessed_ns),
                SLUICE_FIELD(StageStat, modified_ns),
                SLUICE_FIELD(StageStat, changed_ns),
                SLUICE_FIELD(StageStat, born_ns),
                SLUICE_FIELD(StageStat, mode),
                SLUICE_FIELD(StageStat, links),
                SLUICE_FIELD(StageStat, uid),
                SLUICE_FIELD(StageStat, gid),
                SLUICE_FIELD(StageStat, block_size),
                SLUICE_FIELD(StageStat, mask),
                SLUICE_FIELD(StageStat, attributes),
                SLUICE_FIELD(StageStat, attributes_mask),
                SLUICE_FIELD(StageStat, mount)});
}

std::string memory() {
  return table("Shared", sizeof(Shared),
               {SLUICE_FIELD(Shared, header), SLUICE_FIELD(Shared, slots),
                SLUICE_FIELD(Shared, history)}) +
         table("Header", sizeof(Header),
               {SLUICE_FIELD(Header, magic), SLUICE_FIELD(Header, version),
                SLUICE_FIELD(Header, slot_count), SLUICE_FIELD(Header, ring_entries),
                SLUICE_FIELD(Header, size), SLUICE_FIELD(Header, session),
                SLUICE_FIELD(Header, token), SLUICE_FIELD(Header, doorbell),
                SLUICE_FIELD(Header, waiting), SLUICE_FIELD(Header, closed),
                SLUICE_FIELD(Header, samples_idle), SLUICE_FIELD(Header, pages_wanted),
                SLUICE_FIELD(Header, metrics), SLUICE_FIELD(Header, freed)}) +
         table("Slot", sizeof(Slot),
               {SLUICE_FIELD(Slot, pid), SLUICE_FIELD(Slot, generation), SLUICE_FIELD(Slot, tail),
                SLUICE_FIELD(Slot, head), SLUICE_FIELD(Slot, metrics), SLUICE_FIELD(Slot, ring)}) +
         table("Event", sizeof(Event),
               {SLUICE_FIELD(Event, sequence), SLUICE_FIELD(Event, offset),
                SLUICE_FIELD(Event, length), SLUICE_FIELD(Event, time_ns),
                SLUICE_FIELD(Event, address), SLUICE_FIELD(Event, file), SLUICE_FIELD(Event, tid),
                SLUICE_FIELD(Event, kind), SLUICE_FIELD(Event, flags),
                SLUICE_FIELD(Event, reserved)}) +
         table("History", sizeof(History),
               {SLUICE_FIELD(History, sequence), SLUICE_FIELD(History, points),
                SLUICE_FIELD(History, epochs), SLUICE_FIELD(History, epochs_seen),
                SLUICE_FIELD(History, interval_ns), SLUICE_FIELD(History, reserved),
                SLUICE_FIELD(History, epoch), SLUICE_FIELD(History, point)}) +
         words("An entry of `epoch`", kEpochFields) + words("An entry of `point`", kHistoryFields);
}

std::string trace() {
  return table("TraceHeader", sizeof(TraceHeader),
               {SLUICE_FIELD(TraceHeader, magic), SLUICE_FIELD(TraceHeader, version),
                SLUICE_FIELD(TraceHeader, record_size), SLUICE_FIELD(TraceHeader, reserved)}) +
         table("TraceRecord", sizeof(TraceRecord),
               {SLUICE_FIELD(TraceRecord, bytes), SLUICE_FIELD(TraceRecord, epoch),
                SLUICE_FIELD(TraceRecord, job), SLUICE_FIELD(TraceRecord, sample),
                SLUICE_FIELD(TraceRecord, reserved)});
}

std::string pack() {
  return table("PackHeader", sizeof(PackHeader),
               {SLUICE_FIELD(PackHeader, magic), SLUICE_FIELD(PackHeader, version),
                SLUICE_FIELD(PackHeader, checksum), SLUICE_FIELD(PackHeader, bytes),
                SLUICE_FIELD(PackHeader, index_bytes), SLUICE_FIELD(PackHeader, names_bytes),
                SLUICE_FIELD(PackHeader, samples), SLUICE_FIELD(PackHeader, entry_size)}) +
         table("PackEntry", sizeof(PackEntry),
               {SLUICE_FIELD(PackEntry, at), SLUICE_FIELD(PackEntry, length),
                SLUICE_FIELD(PackEntry, checksum), SLUICE_FIELD(PackEntry, part),
                SLUICE_FIELD(PackEntry, version), SLUICE_FIELD(PackEntry, path),
                SLUICE_FIELD(PackEntry, path_length)}) +
         table("PackVersion", sizeof(PackVersion),
               {SLUICE_FIELD(PackVersion, inode), SLUICE_FIELD(PackVersion, size),
                SLUICE_FIELD(PackVersion, modified_s), SLUICE_FIELD(PackVersion, changed_s),
                SLUICE_FIELD(PackVersion, modified_ns), SLUICE_FIELD(PackVersion, changed_ns)});
}

#undef SLUICE_FIELD

std::string numbers() {
  return fmt::format(
      "\n| name | value |\n|---|---|\n| `kVersion` | {} |\n| `kControlMagic` | 0x{:08x} |\n"
      "| `kSharedMagic` | 0x{:08x} |\n| `kMaxPacket` | {} bytes |\n| `kMaxPath` | {} bytes |\n"
      "| `kSlots` | {} |\n| `kRingEntries` | {} |\n| `kHistoryPoints` | {} |\n"
      "| `kHistoryEpochs` | {} |\n| counters of a slot | {} |\n"
      "| counters of a session | {} |\n| `kTraceMagic` | 0x{:08x} |\n| `kTraceVersion` | {} |\n"
      "| `kStageMagic` | 0x{:08x} |\n| `kStageFiles` | {} |\n| `kStageGroups` | {} |\n"
      "| `kStageGroupSize` | {} |\n| `kStagePath` | {} bytes |\n| `kStageSilentNs` | {} ns |\n"
      "| `kPackMagic` | 0x{:08x} |\n| `kPackVersion` | {} |\n| `kPackMaxBytes` | {} bytes |\n"
      "| `kPackMaxHead` | {} bytes |\n| `kPackMaxPath` | {} bytes |\n",
      kVersion, kControlMagic, kSharedMagic, kMaxPacket, kMaxPath, kSlots, kRingEntries,
      kHistoryPoints, kHistoryEpochs, kClientMetricCount, kSessionMetricCount, kTraceMagic,
      kTraceVersion, kStageMagic, kStageFiles, kStageGroups, kStageGroupSize, kStagePath,
      kStageSilentNs, kPackMagic, kPackVersion, kPackMaxBytes, kPackMaxHead, kPackMaxPath);
}

}  // namespace

int print_layout() {
  const std::string text = numbers() + messages() + memory() + stage() + trace() + pack();
  const bool written = fwrite(text.data(), 1, text.size(), stdout) == text.size();
  return written && fflush(stdout) == 0 ? 0 : kExitProblem;
}

}  // namespace sluice::cli
