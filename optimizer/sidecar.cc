#include "optimizer/sidecar.h"

#include "optimizer/io/log.h"
#include "optimizer/sessions/metrics.h"

namespace sluice::optimizer {

using policy::DatasetId;
using policy::kNoSession;
using policy::SampleFileId;
using policy::SessionId;
namespace {

constexpr uint64_t kHungNs = 10 * kSecond;
constexpr uint64_t kCloseNs = kSecond;  // for files to be closed at the end
constexpr uint64_t kTurnNs = 20 * kMillisecond;

}  // namespace

Sidecar::Stores::Stores(const DaemonOptions& options, const Seat& seat, int stop_fd)
    : base(options, seat.listener(), stop_fd),
      files(&base, &plans),
      plans(&files),
      sessions(&base, &plans),
      recordings(&base.executor, base.loop.mailbox()),
      stage(&base, &plans),
      service{&base, &plans, &sessions, &files, &recordings, &stage} {}

Sidecar::Sidecar(const DaemonOptions& options, Seat* seat, int stop_fd)
    : in_(options, *seat, stop_fd),
      locations_{StoredLocations(in_.service), RecordLocator(in_.service)},
      limits_(in_.service, options.memory, &locations_.stored, &locations_.records),
      epochs_{ChunkedSamples(in_.service),
              {in_.service, &epochs_.chunked},
              {in_.service, &epochs_.chunked, &epochs_.chunks}},
      histories_(in_.service),
      transfers_(in_.service, options.no_uring),
      streams_(in_.service, &histories_),
      sequels_(in_.service),
      scans_(in_.service),
      opened_{Openings(in_.service), {in_.service, &opened_.held}},
      starts_(in_.service, &opened_.held),
      samples_{HarmControl(in_.service),
               {in_.service, &locations_.records, &histories_, &epochs_.importance, &samples_.harm},
               {in_.service, &locations_.stored, &locations_.records, &limits_}},
      stage_requests_(in_.service, &epochs_.importance, &limits_),
      lifetime_(in_.service, seat, &scans_, &starts_, &opened_.held),
      status_(in_.service, seat->path(), &transfers_, &epochs_.chunks) {
  in_.sessions.callbacks.events = [this](Session& session, const std::vector<TakenEvent>& events) {
    on_events(session, events);
  };
  in_.sessions.callbacks.slot_freed = [this](Session& session, uint32_t slot, uint32_t pid) {
    on_slot_freed(session, slot, pid);
  };
  in_.sessions.callbacks.ending = [this](Session& session) { on_ending(session); };
  in_.sessions.callbacks.ended = [this](SessionId session) { on_ended(session); };
  in_.stage.opened_ahead.wanted = [this](SessionId id, SampleFileId file) {
    return opened_.samples.wanted(id, file);
  };
  in_.stage.opened_ahead.opened = [this](SessionId id, const std::string& path, OpenedFile file) {
    opened_.held.offer(id, path, std::move(file));
  };
  in_.files.on_ready = [this](const FileEntry& file) {
    locations_.stored.file_ready(file);
    locations_.records.file_ready(file);
  };
  in_.files.on_refused = [this](const FileEntry& file) {
    for (const SessionId id : file.sessions) {
      if (Session* session = in_.sessions.find(id)) ++session->counts.mounts_refused;
    }
  };
}

void Sidecar::run() {
  while (!in_.base.loop.stopping()) {
    in_.sessions.guarded(kNoSession, [this] { turn(); });
  }
  say(Level::kInfo, "ending");
  lifetime_.stop_listening();  // before any response says that the optimizer has ended
  locations_.records.stop_all();
  while (!in_.sessions.empty()) in_.sessions.end(in_.sessions.all().begin()->first);
  // The process that requested the stop may unmount next: wait for files to be closed.
  const uint64_t deadline = now_ns() + kCloseNs;
  while (lifetime_.closing() + locations_.stored.unsettled() + starts_.unsettled() > 0 &&
         now_ns() < deadline) {
    in_.base.loop.turn(kTurnNs);
    transfers_.finish_if_any();
  }
  lifetime_.answer(true);
}

void Sidecar::turn() {
  in_.base.loop.turn(in_.base.loop.timeout_ns(lifetime_.patience_ns()));
  transfers_.finish_if_any();
  streams_.observe(now_ns());
  sequels_.look();
  epochs_.importance.begin_epoch();
  pump(now_ns());
  opened_.samples.look(now_ns());
  in_.sessions.set_idle(transfers_.idle() && in_.plans.stage.mounts().in_flight() == 0);
  transfers_.relax();
  const uint64_t now = now_ns();
  if (in_.base.loop.tick_due(now)) tick(now);
  histories_.record(now_ns());
}

void Sidecar::pump(uint64_t now) {
  stage_requests_.predict(now);
  for (bool more = true; more;) {
    more = in_.plans.scheduler.plan(now, &transfers_.planned());
    in_.stage.carry_out(&in_.plans.scheduler.fetches());
  }
  transfers_.start(now);
  transfers_.start_drops(now);
}

void Sidecar::tick(uint64_t now) {
  in_.sessions.end_failed();
  limits_.relieve();
  in_.sessions.tick(now);
  for (const uint64_t device : in_.plans.scheduler.queue().hung(now, kHungNs)) {
    in_.files.turn_mount_off(device, "a read has been under way for too long: it hangs");
  }
  in_.files.warn_of_hung_opens(now, kHungNs);
  in_.recordings.tick();
  samples_.harm.tick(now);
  publish_metrics(in_.sessions.all(), in_.recordings, in_.plans);
  samples_.requests.request_pages();
  in_.base.server.tick(now);
  epochs_.importance.tick();
  opened_.held.tick(now);
  opened_.samples.tick(now);
  starts_.tick(now);
  limits_.tick(now);
  lifetime_.tick(now);
}

void Sidecar::on_events(Session& session, const std::vector<TakenEvent>& events) {
  transfers_.finish();  // or data that has arrived would count as late
  const uint64_t now = now_ns();
  in_.sessions.guarded(session.id, [&] {
    for (const TakenEvent& event : events) {
      ++session.counts.events_seen;
      const bool good = event.data.kind >= protocol::EventKind::kSampleBegin
                            ? samples_.events.on_event(session, event)
                            : streams_.on_event(session, event, now);
      if (!good) ++session.counts.events_bad;
    }
  });
  // If locations were not learned for lack of room, releases other datasets before the next batch.
  limits_.relieve();
}

void Sidecar::on_slot_freed(Session& session, uint32_t slot, uint32_t pid) {
  Streams::remove_process(session, slot, pid);
  in_.plans.scheduler.streams().remove_process(pid);
  in_.plans.samples.remove_process(pid);
  in_.recordings.remove_process(pid);
  in_.plans.importance.remove_process(session.id, pid);
  epochs_.chunks.remove_process(session.id, pid);
  if (session.selection.used)
    epochs_.importance.choose_policy();  // jobs may no longer share the dataset
}

void Sidecar::on_ending(Session& session) {
  in_.plans.scheduler.settle_session(session.id, now_ns());
  // Before the answer to kBye: the job prints them.
  publish_metrics(in_.sessions.all(), in_.recordings, in_.plans);
  histories_.add_point(session, now_ns());
}

void Sidecar::on_ended(SessionId id) {
  in_.recordings.leave(id);
  locations_.stored.leave(id);
  in_.files.leave(id, [this](uint64_t token) { transfers_.cancel(token); });
  in_.plans.scheduler.remove_session(id, now_ns());
  for (const DatasetId dataset : in_.plans.samples.datasets().only_of(id)) {
    epochs_.importance.remove_dataset(dataset);
    epochs_.chunks.remove_dataset(dataset);
    epochs_.chunked.remove_dataset(dataset);
    samples_.harm.remove(dataset);
    samples_.events.remove_dataset(dataset);
    in_.plans.stage.remove_dataset(dataset);
  }
  in_.plans.samples.leave(id);
  in_.plans.importance.remove_session(id);
  epochs_.chunks.remove_session(id);
  epochs_.chunked.remove_session(id);
  in_.plans.scheduler.retention().remove_session(id);
  sequels_.remove_session(id);
  scans_.remove_session(id);
  starts_.remove_session(id);
  opened_.samples.remove_session(id);
  opened_.held.remove_session(id);
  locations_.records.session_ended();
  in_.plans.stage.room().end_session(id);
  in_.stage.refused().end_session(id);
  if (in_.sessions.empty()) in_.stage.release_disk();
  epochs_.importance.choose_policy();
  in_.plans.orders_changed = true;
}

}  // namespace sluice::optimizer
