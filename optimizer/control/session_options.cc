// The options of a session: parse_options().
#include <cstdlib>

#include "optimizer/control/parse.h"
#include "protocol/importance.h"
#include "protocol/options.h"

namespace sluice::optimizer {

using policy::find_policy;
using policy::ImportanceOptions;
using policy::PolicyInfo;
namespace {

constexpr size_t kMaxProblems = 8;

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
  options.packages = chosen.value(Key::kPackages) == 0;
  return options;
}

void apply_policy(const std::string& value, SessionOptions* options) {
  if (const PolicyInfo* info = find_policy(value)) options->policy = info->kind;
  options->logs = value == "lcache";
  if (value == "brand") options->chunks = policy::ChunkSystemKind::kBrand;
  if (value == "pool") options->chunks = policy::ChunkSystemKind::kPool;
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
      apply_policy(value, options);
      break;
    case protocol::Option::kSubstitute:
      options->substitutes = value == "any";
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
  if (options.decides_order()) options.policy = policy::PolicyKind::kNeeded;
  return options;
}

}  // namespace sluice::optimizer
