// What copies are made with, wherever their bytes come from. Any thread; blocks in the file system.
#pragma once

#include <cstdint>
#include <string>

#include "optimizer/stage/pack_version.h"
#include "optimizer/stage/stage_copy.h"
#include "protocol/stage.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {

CopyResult not_copied(policy::StagePlan::Failure failure, std::string why = {});
CopyResult not_copied(int error, const std::string& path);

// `flags`: of statx(). False: errno.
bool stat_of(int fd, int flags, protocol::StageStat* out);
bool stat_at(int folder, const char* name, int flags, protocol::StageStat* out);
// Whether it is the same state of the same file.
bool same(const protocol::StageStat& a, const protocol::StageStat& b);

// Whether the file may be fetched; sets the result's `stat` and `flags`, and an O_PATH descriptor
// in *place.
CopyResult examine(const std::string& path, const CopyRules& rules, UniqueFd* place,
                   StageMount* mount);

// A copy without a name yet, to be written; its name, which sets the result's `inode` and
// `charged`. False: errno.
UniqueFd new_copy(int folder);
bool publish_copy(const UniqueFd& copy, int folder, uint64_t name, CopyResult* result);

std::string proc_path(int fd);

}  // namespace sluice::optimizer
