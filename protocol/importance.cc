#include "protocol/importance.h"

#include <cstring>

#include "protocol/words.h"

namespace sluice::protocol {
namespace {

constexpr const char* kModes = "off|loss|iis";

constexpr bool in_order() {
  for (size_t i = 0; i < kImportanceKeyCount; ++i) {
    if (static_cast<size_t>(kImportanceKeys[i].key) != i) return false;
  }
  return true;
}
static_assert(in_order());

const ImportanceKeyInfo* find_key(const char* name, size_t length) {
  for (const ImportanceKeyInfo& info : kImportanceKeys) {
    if (strlen(info.name) == length && memcmp(info.name, name, length) == 0) return &info;
  }
  return nullptr;
}

// `text` is "key=value" of `length` characters.
const char* take_setting(const char* text, size_t length, Importance* importance) {
  const auto* equals = static_cast<const char*>(memchr(text, '=', length));
  const size_t name = equals != nullptr ? static_cast<size_t>(equals - text) : length;
  const ImportanceKeyInfo* info = find_key(text, name);
  if (info == nullptr) {
    return "has a key that is none of share, warmup, full-every, beta, history, h-share, "
           "substitute, most-substituted, packages, seed";
  }
  if (equals == nullptr || name + 1 == length) return "has a key without a value";
  const auto at = static_cast<size_t>(info->key);
  if (importance->given[at]) return "has a key twice";
  const char* value = equals + 1;
  const size_t size = length - name - 1;
  uint64_t number = 0;
  if (*info->choices != '\0') {
    const int choice = choice_number(info->choices, value, size);
    if (choice < 0) return "has a substitute that is none of never, class, any";
    number = static_cast<uint64_t>(choice);
  } else {
    if (!parse_number(value, size, &number)) return "has a value that is not a whole number";
    if (number < info->low || number > info->high) return "has a value out of range";
  }
  importance->values[at] = number;
  importance->given[at] = true;
  return nullptr;
}

}  // namespace

const char* parse_importance(const char* text, Importance* importance) {
  *importance = {};
  Importance parsed;
  for (size_t i = 0; i < kImportanceKeyCount; ++i) parsed.values[i] = kImportanceKeys[i].value;
  const auto mode = static_cast<size_t>(strchrnul(text, ':') - text);
  const int number = choice_number(kModes, text, mode);
  if (number < 0) return "is none of off, loss, iis, iis:KEY=VALUE,...";
  parsed.mode = static_cast<ImportanceMode>(number);
  if (text[mode] == ':') {
    if (parsed.mode != ImportanceMode::kIis) return "has keys, which only iis takes";
    for (const char* at = text + mode + 1;;) {
      const auto length = static_cast<size_t>(strchrnul(at, ',') - at);
      if (const char* problem = take_setting(at, length, &parsed); problem != nullptr) {
        return problem;
      }
      if (at[length] == '\0') break;
      at += length + 1;
    }
  }
  *importance = parsed;
  return nullptr;
}

}  // namespace sluice::protocol
