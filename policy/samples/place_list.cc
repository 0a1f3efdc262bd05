#include "policy/samples/place_list.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "protocol/siphash.h"

namespace sluice::policy {
namespace {

using nlohmann::json;

constexpr char kMagic[] = {'S', 'L', 'P', 'L', 'A', 'C', 'E', 'S'};
constexpr uint64_t kVersion = 1;
constexpr uint64_t kSecret[2] = {0x736c756963652070, 0x6c61636573000001};  // only a checksum
constexpr size_t kHead = sizeof kMagic + sizeof(protocol::Hash128);

template <typename T>
const T* get(const json& object, const char* key) {
  const auto at = object.find(key);
  return at == object.end() ? nullptr : at->get_ptr<const T*>();
}

bool read_files(const json& list, std::vector<PlaceList::File>* files) {
  if (!list.is_array()) return false;
  for (const json& entry : list) {
    if (!entry.is_object()) return false;
    const auto* path = get<json::string_t>(entry, "path");
    const auto* size = get<json::number_unsigned_t>(entry, "size");
    const auto* modified = get<json::number_integer_t>(entry, "modified_ns");
    if (path == nullptr || size == nullptr || modified == nullptr) return false;
    files->push_back({*path, *size, *modified});
  }
  return true;
}

bool read_paths(const std::vector<uint8_t>& bytes, std::vector<std::string>* paths) {
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  for (size_t at = 0; at < bytes.size();) {
    const size_t length = strnlen(text + at, bytes.size() - at);
    if (at + length == bytes.size() || text[at] != '/') return false;
    paths->emplace_back(text + at, length);
    at += length + 1;
  }
  return true;
}

}  // namespace

std::vector<uint8_t> PlaceList::encode() const {
  json listed = json::array();
  for (const File& file : files) {
    listed.push_back({{"path", file.path}, {"size", file.size}, {"modified_ns", file.modified_ns}});
  }
  std::vector<uint8_t> paths;
  for (const std::string& path : whole) {
    paths.insert(paths.end(), path.c_str(), path.c_str() + path.size() + 1);
  }
  std::vector<uint8_t> packed(parts.size() * sizeof(Part));
  if (!parts.empty()) memcpy(packed.data(), parts.data(), packed.size());
  const json object = {{"version", kVersion},
                       {"name", name},
                       {"samples", samples},
                       {"files", std::move(listed)},
                       {"whole", json::binary(std::move(paths))},
                       {"parts", json::binary(std::move(packed))}};
  std::vector<uint8_t> bytes(kHead);
  json::to_cbor(object, bytes);
  const protocol::Hash128 hash =
      protocol::siphash(kSecret, bytes.data() + kHead, bytes.size() - kHead);
  memcpy(bytes.data(), kMagic, sizeof kMagic);
  memcpy(bytes.data() + sizeof kMagic, &hash, sizeof hash);
  return bytes;
}

bool PlaceList::decode(std::span<const uint8_t> bytes, std::string* problem) {
  *this = {};
  protocol::Hash128 hash;
  if (bytes.size() < kHead || memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) {
    *problem = "not a file of places";
    return false;
  }
  memcpy(&hash, bytes.data() + sizeof kMagic, sizeof hash);
  bytes = bytes.subspan(kHead);
  const protocol::Hash128 found = protocol::siphash(kSecret, bytes.data(), bytes.size());
  if (found.low != hash.low || found.high != hash.high) {
    *problem = "damaged";
    return false;
  }
  const json object = json::from_cbor(bytes.begin(), bytes.end(), true, false);
  const auto* version =
      object.is_object() ? get<json::number_unsigned_t>(object, "version") : nullptr;
  if (version == nullptr || *version != kVersion) {
    *problem = "of another version";
    return false;
  }
  const auto* title = get<json::string_t>(object, "name");
  const auto* count = get<json::number_unsigned_t>(object, "samples");
  const auto* paths = get<json::binary_t>(object, "whole");
  const auto* packed = get<json::binary_t>(object, "parts");
  *problem = "makes no sense";
  if (title == nullptr || count == nullptr || paths == nullptr || packed == nullptr ||
      packed->size() % sizeof(Part) != 0 || object.find("files") == object.end() ||
      !read_files(object["files"], &files) || !read_paths(*paths, &whole)) {
    return false;
  }
  name = *title;
  samples = *count;
  parts.resize(packed->size() / sizeof(Part));
  if (!parts.empty()) memcpy(parts.data(), packed->data(), packed->size());
  for (const Part& part : parts) {
    if (part.sample >= samples || part.file >= (part.whole != 0 ? whole.size() : files.size())) {
      return false;
    }
  }
  problem->clear();
  return true;
}

std::string place_file_name(const std::string& name, uint64_t samples) {
  const std::string text = std::to_string(samples) + "\n" + name;
  const protocol::Hash128 hash = protocol::siphash(kSecret, text.data(), text.size());
  char file[48];
  snprintf(file, sizeof file, "%016" PRIx64 "%016" PRIx64 ".places", hash.low, hash.high);
  return file;
}

}  // namespace sluice::policy
