#include "optimizer/services/stage/make_copy.h"

#include "optimizer/io/clock.h"
#include "protocol/stage.h"

namespace sluice::optimizer {

CopyDone make_copy(const CopyJob& job, StageFolder* folder, StageWatch* watch) {
  // Watched before it is read, so that no change between the two is missed.
  bool watched = watch->add(job.above);
  CopyDone done;
  done.begun_ns = now_ns();
  done.to_pack = std::make_shared<CopyToPack>();
  CopyResult& result = done.result;
  result = copy_in(job.path, folder->fd(), job.name, job.rules, done.to_pack.get());
  result.time = {done.begun_ns, now_ns() - done.begun_ns};
  if (result.good && ((result.flags & protocol::kStageLink) != 0 || result.stat.links > 1)) {
    // The folder's watch misses changes under other names: watch the file too, then recheck it.
    watched = watch->add_file(job.path) && watched;
    if (!recheck(job.path, result.stat).good) {
      folder->remove(job.name);
      result = {};
    }
  }
  // A missing file needs no watch.
  done.unseen = result.good && !watched;
  if (done.unseen) result.flags |= protocol::kStageUnwatched;
  if (!result.good) done.to_pack->fd.reset();
  return done;
}

}  // namespace sluice::optimizer
