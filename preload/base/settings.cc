#include "preload/base/settings.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "preload/base/log.h"
#include "preload/base/self.h"
#include "preload/base/start_page.h"
#include "preload/base/sys.h"
#include "protocol/importance.h"
#include "protocol/words.h"

namespace sluice::preload {

SLUICE_TOUCHED_AT_START constinit Settings g_settings;

namespace {

using protocol::Option;
using protocol::OptionInfo;

using ConfigSet = void (*)(void*, const char*, const char*);
using ConfigRead = int (*)(const char*, ConfigSet, void*, char*, size_t);

// The text of all values in use.
constinit char g_values[16384] = {};
SLUICE_TOUCHED_AT_START constinit size_t g_values_used = 0;

// Copies a value and the text to append: a job that sets its process title overwrites its initial
// environment.
const char* stored(const char* value, const char* more = "") {
  const size_t length = strlen(value);
  const size_t size = length + strlen(more) + 1;
  if (size > sizeof g_values - g_values_used) return nullptr;
  char* copy = g_values + g_values_used;
  memcpy(copy, value, length);
  memcpy(copy + length, more, size - length);
  g_values_used += size;
  return copy;
}

void set_from_file(void*, const char* flag, const char* value) {
  const OptionInfo* info = protocol::find_option(flag, strlen(flag));
  if (info == nullptr) {
    say(LogLevel::kWarn, "%s is not an option (in the SLUICE_CONFIG file); ignored", flag);
    return;
  }
  const char*& text = g_settings.text[static_cast<size_t>(info->option)];
  if (text == nullptr) text = stored(value);  // else the environment wins
}

void read_file(const char* path) {
  char reader[4096];
  if (!beside_library(reader, sizeof reader, "libsluice_config.so")) return;
  void* library = dlopen(reader, RTLD_NOW | RTLD_LOCAL);
  auto* read = library != nullptr
                   ? reinterpret_cast<ConfigRead>(dlsym(library, "sluice_config_read"))
                   : nullptr;
  if (read == nullptr) {
    say(LogLevel::kWarn, "cannot load libsluice_config.so; SLUICE_CONFIG=%s is ignored", path);
    return;
  }
  char error[256] = "";
  if (read(path, set_from_file, nullptr, error, sizeof error) != 0) {
    say(LogLevel::kWarn, "%s; SLUICE_CONFIG is ignored", error);
  }
}

const char* value_of(Option option) {
  const char* text = g_settings.text[static_cast<size_t>(option)];
  return text != nullptr ? text : protocol::option_info(option).default_text;
}

bool switch_of(Option option) {
  bool on = false;
  protocol::parse_switch(value_of(option), &on);
  return on;
}

uint32_t choice_of(Option option) {
  const char* value = value_of(option);
  const int number =
      protocol::choice_number(protocol::option_info(option).choices, value, strlen(value));
  return number > 0 ? static_cast<uint32_t>(number) : 0;
}

void apply_importance() {
  using Key = protocol::ImportanceKey;
  protocol::Importance chosen;
  protocol::parse_importance(value_of(Option::kImportance), &chosen);
  g_settings.importance = static_cast<uint32_t>(chosen.mode);
  g_settings.warm_up = static_cast<uint32_t>(chosen.value(Key::kWarmUp));
  g_settings.full_every = static_cast<uint32_t>(chosen.value(Key::kFullEvery));
  // The mean share that is selected: as given, or the mean of percentile^beta over all percentiles.
  g_settings.selected_share = chosen.has(Key::kShare)
                                  ? static_cast<double>(chosen.value(Key::kShare)) / 100.0
                                  : 1 / (1 + static_cast<double>(chosen.value(Key::kBeta)) / 100.0);
}

void apply_policy() {
  const char* const policy = value_of(Option::kPolicy);
  g_settings.logs = strcmp(policy, "lcache") == 0 && *value_of(Option::kCacheDir) != '\0';
  // Selecting samples by importance decides the order by itself.
  g_settings.substitutes = (strcmp(policy, "brand") == 0 || strcmp(policy, "pool") == 0) &&
                           strcmp(value_of(Option::kSubstitute), "any") == 0 &&
                           g_settings.importance < 2;
}

// In place: some programs (bash) have an unsetenv of their own.
void forget_variable(const char* name) {
  const size_t length = strlen(name);
  char** left = environ;
  for (char** at = environ; *at != nullptr; ++at) {
    if (strncmp(*at, name, length) != 0 || (*at)[length] != '=') *left++ = *at;
  }
  *left = nullptr;
}

void check_values() {
  for (const OptionInfo& info : protocol::kOptions) {
    const char*& text = g_settings.text[static_cast<size_t>(info.option)];
    if (text == nullptr) continue;
    const char* problem = protocol::option_problem(info, text);
    if (problem == nullptr) continue;
    say(LogLevel::kWarn, "%s=%s %s; using the default%s%s", info.variable, text, problem,
        *info.default_text != '\0' ? ", " : "", info.default_text);
    text = nullptr;
    // Children use the default too, without a warning: one line for a job, not one a process.
    forget_variable(info.variable);
  }
}

// The default folder by the XDG base directory specification; none if the user has no home.
void find_places() {
  const char*& text = g_settings.text[static_cast<size_t>(Option::kPlaces)];
  if (text != nullptr) {
    if (*text == '/' || strcmp(text, "off") == 0) return;
    say(LogLevel::kWarn, "SLUICE_PLACES=%s is no absolute path; nothing is stored", text);
    text = "off";
    return;
  }
  const char* cache = getenv("XDG_CACHE_HOME");
  const char* home = getenv("HOME");
  if (cache != nullptr && *cache == '/') {
    text = stored(cache, "/sluice");
  } else if (home != nullptr && *home == '/') {
    text = stored(home, "/.cache/sluice");
  }
}

// Most programs have none of Sluice's variables: a fast check for that.
bool any_variable() {
  using protocol::kVariablePrefix;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    if (strncmp(*at, kVariablePrefix, sizeof kVariablePrefix - 1) == 0) return true;
  }
  return false;
}

// In a new array: some programs (bash) have a putenv of their own.
void add_to_environment(char* entry) {
  size_t count = 0;
  while (environ[count] != nullptr) ++count;
  const long memory = sys::call(SYS_mmap, 0, static_cast<long>((count + 2) * sizeof(char*)),
                                PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (sys::failed(memory)) return;
  auto** const copy = reinterpret_cast<char**>(memory);
  memcpy(copy, environ, count * sizeof(char*));
  copy[count] = entry;
  environ = copy;
}

// Names the job: processes that this one starts belong to it and share its report. The leading
// minus distinguishes the name from one that `sluice run` gives.
void begin_job() {
  static constinit char entry[64] = {};
  const int used = snprintf(entry, sizeof entry, "SLUICE_JOB=");
  snprintf(entry + used, sizeof entry - static_cast<size_t>(used), "-%d-%llx", sys::pid(),
           static_cast<unsigned long long>(sys::now_ns()));
  g_settings.job = entry + used;
  add_to_environment(entry);
}

// Warns of variables whose names are nearly an option's. Other names may belong to other software.
void check_names() {
  for (char** at = environ; *at != nullptr;) {
    const size_t length = strcspn(*at, "=");
    const OptionInfo* meant = protocol::misspelled_variable(*at, length);
    char name[48];
    if (meant == nullptr || length >= sizeof name) {
      ++at;
      continue;
    }
    memcpy(name, *at, length);
    name[length] = '\0';
    say(LogLevel::kWarn, "%s is not an option; did you mean %s?", name, meant->variable);
    forget_variable(name);  // one warning a job, as for a bad value
  }
}

void apply() {
  static constexpr protocol::CheckpointMode kModes[] = {
      protocol::CheckpointMode::kCell, protocol::CheckpointMode::kCell,
      protocol::CheckpointMode::kPage, protocol::CheckpointMode::kObserve,
      protocol::CheckpointMode::kOff};
  const uint32_t mode = choice_of(Option::kCheckpoint);
  g_settings.checkpoint_auto = mode == 0;
  g_settings.checkpoint = kModes[mode];
  g_settings.log = static_cast<LogLevel>(choice_of(Option::kLog));
  g_settings.off = switch_of(Option::kOff);
  g_settings.prefetch = switch_of(Option::kPrefetch);
  const uint32_t stage = choice_of(Option::kStage);  // auto, always, never
  g_settings.stage = stage != 2 && g_settings.prefetch;
  g_settings.stage_all = stage == 1;
  g_settings.stale = strtoull(value_of(Option::kStale), nullptr, 10);
  g_settings.patience = strtoull(value_of(Option::kPatience), nullptr, 10);
  g_settings.python = switch_of(Option::kPython);
  apply_importance();
  apply_policy();
  g_settings.callsites = switch_of(Option::kCallsites);
  g_settings.crash_trace = switch_of(Option::kCrashTrace);
  if (!protocol::parse_bytes(value_of(Option::kDistance), &g_settings.distance)) {
    g_settings.distance = 0;
  }
  // A cell is whole pages; the published default of page mode is 8 MiB.
  g_settings.distance &= ~uint64_t{4095};
  g_settings.guard_regions = strstr(value_of(Option::kForceFallback), "noguard") == nullptr;
}

}  // namespace

void read_settings() {
  bool any = false;
  const bool look = any_variable();
  for (const OptionInfo& info : protocol::kOptions) {
    if (!look) break;
    const char* text = getenv(info.variable);
    if (text != nullptr && *text == '\0') text = nullptr;  // empty is unset
    g_settings.text[static_cast<size_t>(info.option)] = text != nullptr ? stored(text) : nullptr;
    any = any || text != nullptr;
  }
  const char* job = getenv("SLUICE_JOB");
  g_settings.job = job != nullptr && *job != '\0' ? stored(job) : nullptr;
  g_settings.off = false;
  const char* report = g_settings.text[static_cast<size_t>(Option::kReport)];
  if (report != nullptr && g_settings.job == nullptr) begin_job();
  if (any) {
    const char* config = g_settings.text[static_cast<size_t>(Option::kConfig)];
    if (config != nullptr && *config != '\0') read_file(config);
    check_values();
    apply();
  }
  if (look && !g_settings.off) check_names();
  find_places();
}

}  // namespace sluice::preload
