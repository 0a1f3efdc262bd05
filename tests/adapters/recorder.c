/* Takes the place of libsluice.so in the adapter's tests: exports the functions of
 * protocol/sluice.h and appends what they are called with to the file named by RECORDER_FILE, one
 * line a call:
 *
 *   PID dataset NUMBER SAMPLES NAME
 *   PID order DATASET EPOCH FIRST COUNT FLAGS INDEX...
 *   PID begin DATASET INDEX            (end: the same)
 *   PID files DATASET FIRST COUNT PATH...   (each path preceded by a tab; a line for each run of
 *                                            samples with one file)
 *   PID parts DATASET INDEX PATH...         (likewise, a sample with several)
 *   PID extent DATASET INDEX OFFSET LENGTH PATH
 *   PID keys DATASET FIRST COUNT PATH KEY...
 *
 * With RECORDER_TENTATIVE, tentative orders are of use. With RECORDER_BRIEF, indices and paths are
 * left out. RECORDER_ADAPTER is the adapter's folder:
 * it is put on PYTHONPATH as the library does it, in Pythons, before the interpreter looks. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/sluice.h"

__attribute__((constructor)) static void put_on_path(void) {
  const char* folder = getenv("RECORDER_ADAPTER");
  if (!folder || strncmp(program_invocation_short_name, "python", 6)) return;
  const char* user = getenv("PYTHONPATH");
  char* both = NULL;
  if (user) setenv("SLUICE_PYTHONPATH_WAS", user, 1);
  if (asprintf(&both, user && *user ? "%s:%s" : "%s", folder, user) < 0) abort();
  setenv("PYTHONPATH", both, 1);
  free(both);
}

/* A line is collected in memory and written with one call: processes share the file. */
struct line {
  FILE* text;
  char* bytes;
  size_t length;
};

static void begin_line(struct line* line, const char* format, ...) {
  line->text = open_memstream(&line->bytes, &line->length);
  if (!line->text) abort();
  fprintf(line->text, "%d ", getpid());
  va_list values;
  va_start(values, format);
  vfprintf(line->text, format, values);
  va_end(values);
}

static int end_line(struct line* line) {
  fputc('\n', line->text);
  fclose(line->text);
  const char* name = getenv("RECORDER_FILE");
  int fd = name ? open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
  if (fd >= 0) {
    if (write(fd, line->bytes, line->length) != (ssize_t)line->length) abort();
    close(fd);
  }
  free(line->bytes);
  return 0;
}

static int brief(void) { return getenv("RECORDER_BRIEF") != NULL; }

int sluice_dataset(const char* name, uint64_t samples) {
  uint32_t hash = 2166136261u; /* FNV-1a: the same number for the same name in every process */
  for (const char* c = name; *c; c++) hash = (hash ^ (unsigned char)*c) * 16777619u;
  int number = (int)(hash % 1000000u) + 1;
  struct line line;
  begin_line(&line, "dataset %d %" PRIu64 " %s", number, samples, name);
  end_line(&line);
  return number;
}

int sluice_order(int dataset, uint32_t epoch, uint64_t first, const uint64_t* indices,
                 uint64_t count, uint32_t flags) {
  struct line line;
  begin_line(&line, "order %d %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu32, dataset, epoch, first,
             count, flags);
  for (uint64_t i = 0; i < count && !brief(); i++) fprintf(line.text, " %" PRIu64, indices[i]);
  return end_line(&line);
}

int sluice_tentative(void) { return getenv("RECORDER_TENTATIVE") != NULL; }

int sluice_begin(int dataset, uint64_t index) {
  if (brief()) return 0;
  struct line line;
  begin_line(&line, "begin %d %" PRIu64, dataset, index);
  return end_line(&line);
}

int sluice_end(int dataset, uint64_t index) {
  if (brief()) return 0;
  struct line line;
  begin_line(&line, "end %d %" PRIu64, dataset, index);
  return end_line(&line);
}

int sluice_next(int dataset, int index, int previous) {
  if (previous >= 0) sluice_end(dataset, (uint64_t)previous);
  if (index >= 0) sluice_begin(dataset, (uint64_t)index);
  return index;
}

int sluice_wanted(void) { return 1; }
int sluice_fetch_begin(int dataset) { return dataset > 0 ? 0 : -22; }
int sluice_fetch_end(int dataset) { return dataset > 0 ? 0 : -22; }

int sluice_locate_files(int dataset, uint64_t first, const char* const* paths, uint64_t count) {
  struct line line;
  begin_line(&line, "files %d %" PRIu64 " %" PRIu64, dataset, first, count);
  for (uint64_t i = 0; i < count && !brief(); i++) fprintf(line.text, "\t%s", paths[i]);
  return end_line(&line);
}

int sluice_locate_parts(int dataset, uint64_t first, const char* const* paths, uint64_t count,
                        uint32_t each) {
  uint64_t run = 0; /* samples before i with one file */
  for (uint64_t i = 0; i <= count; i++) {
    uint32_t files = 0;
    for (uint32_t k = 0; i < count && k < each; k++) files += *paths[i * each + k] != '\0';
    if (files == 1 && each == 1) {
      run++;
      continue;
    }
    if (run) sluice_locate_files(dataset, first + i - run, paths + i - run, run);
    run = 0;
    if (!files) continue;
    struct line line;
    begin_line(&line, "parts %d %" PRIu64 " ", dataset, first + i);
    for (uint32_t k = 0; k < each; k++)
      if (*paths[i * each + k]) fprintf(line.text, "\t%s", paths[i * each + k]);
    end_line(&line);
  }
  return 0;
}

int sluice_located(int dataset) { return dataset > 0 ? 0 : -22; }

/* What the watched thread opened, but for what belongs to the system. */
static __thread int watching;
static __thread char opened[32768];
static __thread size_t used;

int sluice_watch_opens(int on) {
  watching = on;
  used = 0;
  return 0;
}

int sluice_take_opens(char* text, uint64_t size) {
  size_t length = used < size ? used : 0;
  memcpy(text, opened, length);
  used = 0;
  return (int)length;
}

static int noted(int fd, const char* path) {
  struct stat about;
  if (!watching || fd < 0 || !strncmp(path, "/usr/", 5) || fstat(fd, &about) ||
      !S_ISREG(about.st_mode))
    return fd;
  char folder[4096] = "";
  if (*path != '/' && !getcwd(folder, sizeof folder)) return fd;
  int length =
      snprintf(opened + used, sizeof opened - used, "%s%s%s", folder, *folder ? "/" : "", path);
  if ((size_t)length < sizeof opened - used) used += (size_t)length + 1;
  return fd;
}

static int open_next(const char* name, const char* path, int flags, int mode) {
  int (*next)(const char*, int, ...) = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, name);
  return noted(next(path, flags, mode), path);
}

static int mode_of(int flags, va_list values) {
  return (flags & (O_CREAT | __O_TMPFILE)) ? va_arg(values, int) : 0;
}

int open(const char* path, int flags, ...) {
  va_list values;
  va_start(values, flags);
  int mode = mode_of(flags, values);
  va_end(values);
  return open_next("open", path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list values;
  va_start(values, flags);
  int mode = mode_of(flags, values);
  va_end(values);
  return open_next("open64", path, flags, mode);
}

int sluice_locate_extent(int dataset, uint64_t index, const char* path, uint64_t offset,
                         uint64_t length) {
  struct line line;
  begin_line(&line, "extent %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %s", dataset, index, offset,
             length, path);
  return end_line(&line);
}

int sluice_locate_extents(int dataset, uint64_t first, const char* path, const uint64_t* offsets,
                          const uint32_t* lengths, uint64_t count) {
  struct line line;
  begin_line(&line, "extents %d %" PRIu64 " %s", dataset, first, path);
  for (uint64_t i = 0; i < count && !brief(); i++)
    fprintf(line.text, " %" PRIu64 "+%" PRIu32, offsets[i], lengths[i]);
  return end_line(&line);
}

int sluice_locate_keys(int dataset, uint64_t first, const char* path, const void* keys,
                       const uint32_t* lengths, uint64_t count) {
  struct line line;
  begin_line(&line, "keys %d %" PRIu64 " %" PRIu64 " %s", dataset, first, count, path);
  const char* key = keys;
  for (uint64_t i = 0; i < count; key += lengths[i++])
    fprintf(line.text, " %.*s", (int)lengths[i], key);
  return end_line(&line);
}
