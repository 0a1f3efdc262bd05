// Numbers that name things, each kind a type of its own: an argument of another kind does not
// compile. Plain 32-bit values, ordered and hashable; a zero-initialized one names nothing.
#pragma once

#include <cstdint>
#include <type_traits>

namespace sluice::policy {

enum class SessionId : uint32_t {};
enum class DatasetId : uint32_t {};
enum class FileId : uint32_t {};        // a file that the optimizer follows: it reads ranges of it
enum class SampleFileId : uint32_t {};  // a path in the FileTable: such a file is fetched whole

// No session, dataset or followed file has this id.
inline constexpr SessionId kNoSession{};
inline constexpr DatasetId kNoDataset{};
inline constexpr FileId kNoFile{};

// The id's number, for logs, JSON and messages.
template <typename Id>
requires std::is_enum_v<Id>
constexpr std::underlying_type_t<Id> number(Id id) {
  return static_cast<std::underlying_type_t<Id>>(id);
}

// In place of a device number, above all of the kernel's: the mounts of what a session names,
// before they are known. One that hangs then holds up what its own session names alone.
inline constexpr uint64_t kUnknownMounts = uint64_t{1} << 62;
constexpr uint64_t unknown_mount(SessionId session) { return kUnknownMounts + number(session); }

}  // namespace sluice::policy
