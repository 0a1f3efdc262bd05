#include "policy/weights/tensor_list.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace sluice::policy {
namespace {

using nlohmann::json;

constexpr int kDepth = 2;  // of what holds values: the file, a tensor, its shape
constexpr const char* kNotes = "__metadata__";

// The name with "#" for each number.
std::string kind_of(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) {
      out += c;
    } else if (out.empty() || out.back() != '#') {
      out += '#';
    }
  }
  return out;
}

bool read_range(const json& entry, uint64_t begin, uint64_t size, Range* range) {
  const auto at = entry.find("data_offsets");
  if (at == entry.end() || !at->is_array() || at->size() != 2) return false;
  const auto* from = (*at)[0].get_ptr<const json::number_unsigned_t*>();
  const auto* to = (*at)[1].get_ptr<const json::number_unsigned_t*>();
  if (from == nullptr || to == nullptr || *from > *to || *to > size - begin) return false;
  *range = {begin + *from, begin + *to};
  return true;
}

bool has_rows(const json& entry) {
  const auto shape = entry.find("shape");
  if (shape == entry.end() || !shape->is_array() || shape->size() < 2) return false;
  const auto* rows = (*shape)[0].get_ptr<const json::number_unsigned_t*>();
  return rows != nullptr && *rows > 1;
}

}  // namespace

uint64_t safetensors_header(std::string_view begin, uint64_t size) {
  if (begin.size() < kSafetensorsBegin || size < kSafetensorsBegin) return 0;
  uint64_t length = 0;  // little-endian, as this host is
  std::memcpy(&length, begin.data(), sizeof length);
  return length > std::min(kMostHeader, size - kSafetensorsBegin) ? 0 : length;
}

TensorList parse_safetensors(std::string_view header, uint64_t size) {
  const uint64_t begin = kSafetensorsBegin + header.size();
  // Values that no header has are not built.
  const auto wanted = [](int depth, json::parse_event_t event, const json&) {
    const bool opens =
        event == json::parse_event_t::object_start || event == json::parse_event_t::array_start;
    return !opens || (depth == 0 ? event == json::parse_event_t::object_start : depth <= kDepth);
  };
  const json all = json::parse(header.begin(), header.end(), wanted, false);
  if (!all.is_object() || all.size() > kMostTensors || begin > size) return {};
  TensorList out;
  std::map<std::string, uint32_t> kinds;
  for (const auto& [name, entry] : all.items()) {
    if (name == kNotes) continue;
    Tensor tensor;
    if (!entry.is_object() || !read_range(entry, begin, size, &tensor.bytes)) return {};
    if (tensor.bytes.length() == 0) continue;
    tensor.rows = has_rows(entry);
    tensor.kind = kinds.try_emplace(kind_of(name), kinds.size()).first->second;
    out.push_back(tensor);
  }
  std::sort(out.begin(), out.end(),
            [](const Tensor& a, const Tensor& b) { return a.bytes.begin < b.bytes.begin; });
  const auto overlap = std::adjacent_find(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return a.bytes.end > b.bytes.begin;
  });
  return overlap == out.end() ? out : TensorList();
}

}  // namespace sluice::policy
