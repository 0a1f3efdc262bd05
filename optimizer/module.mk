PROGRAMS += sluice-optimizer

# Shared with `sluice simulate`.
POLICY_SRCS := $(wildcard optimizer/policies/*.cc)
# Which samples matter, and what that decides; shared with it too.
IMPORTANCE_SRCS := $(wildcard optimizer/importance/*.cc)

OPTIMIZER_PURE_SRCS := \
  optimizer/control/parse.cc \
  optimizer/observe/observer.cc \
  optimizer/plan/budget.cc \
  optimizer/plan/harm_watch.cc \
  optimizer/plan/interval_set.cc \
  optimizer/plan/page_owners.cc \
  optimizer/plan/record_plan.cc \
  optimizer/plan/savings.cc \
  optimizer/plan/scheduler.cc \
  optimizer/plan/scheduler_pump.cc \
  optimizer/plan/scheduler_records.cc \
  optimizer/plan/scheduler_samples.cc \
  optimizer/plan/scheduler_view.cc \
  optimizer/plan/storage_model.cc \
  optimizer/plan/request_cost.cc \
  optimizer/plan/gatherer.cc \
  optimizer/plan/scheduler_runs.cc \
  optimizer/plan/stream_plan.cc \
  optimizer/samples/file_fitness.cc \
  optimizer/samples/file_table.cc \
  optimizer/samples/place_list.cc \
  optimizer/samples/key_guess.cc \
  optimizer/samples/row_guess.cc \
  optimizer/samples/sample_guess.cc \
  optimizer/samples/key_scheme.cc \
  optimizer/record/recorder.cc \
  optimizer/samples/sample_book.cc \
  optimizer/samples/sample_book_memory.cc \
  optimizer/samples/sample_order.cc \
  optimizer/samples/sample_set.cc \
  optimizer/stage/stage_plan.cc \
  optimizer/stage/uptake.cc \
  optimizer/streams/tracker.cc \
  protocol/importance.cc protocol/options.cc \
  $(POLICY_SRCS) \
  $(IMPORTANCE_SRCS)

# One pack, and the folder of packs; shared with `sluice packs`. Then all of a folder's packs.
PACK_FILE_SRCS := $(addprefix optimizer/packs/,pack_file.cc pack_folder.cc)
PACK_SRCS := $(PACK_FILE_SRCS) $(addprefix optimizer/packs/,pack_index.cc pack_load.cc pack_store.cc)

# The reader of data.mdb, which sluice-lmdb has too; it needs no liblmdb.
LMDB_READER_SRCS := $(addprefix lmdb_tools/,database.cc file.cc tree_walk.cc)

OPTIMIZER_IO_SRCS := \
  optimizer/daemon/log.cc \
  optimizer/io/ancestors.cc \
  optimizer/io/memory.cc \
  optimizer/io/memory_file.cc \
  optimizer/io/peer.cc \
  optimizer/io/place_store.cc \
  optimizer/io/pool_engine.cc \
  optimizer/io/reopen.cc \
  optimizer/io/residency.cc \
  optimizer/io/uring_engine.cc \
  optimizer/samples/lmdb_records.cc \
  optimizer/stage/stage_copy.cc \
  optimizer/stage/stage_folder.cc \
  optimizer/stage/mount_watch.cc \
  optimizer/stage/stage_index.cc \
  optimizer/stage/pack_version.cc \
  optimizer/stage/stage_watch.cc \
  optimizer/observe/page_table.cc \
  $(PACK_SRCS) \
  $(LMDB_READER_SRCS)

OPTIMIZER_CORE_SRCS := \
  optimizer/core/executor.cc \
  optimizer/core/files.cc \
  optimizer/core/history.cc \
  optimizer/core/optimizer.cc \
  optimizer/core/optimizer_control.cc \
  optimizer/core/optimizer_history.cc \
  optimizer/core/optimizer_importance.cc \
  optimizer/core/optimizer_limits.cc \
  optimizer/core/optimizer_observe.cc \
  optimizer/core/optimizer_record.cc \
  optimizer/core/optimizer_samples.cc \
  optimizer/core/optimizer_sessions.cc \
  optimizer/core/optimizer_stage.cc \
  optimizer/core/place_keeper.cc \
  optimizer/core/record_keeper.cc \
  optimizer/core/ring_reader.cc \
  optimizer/core/server.cc \
  optimizer/core/session.cc \
  optimizer/core/harm_keeper.cc \
  optimizer/core/optimizer_harm.cc \
  optimizer/core/stage_keeper.cc \
  optimizer/core/status.cc \
  optimizer/record/recordings.cc \
  optimizer/record/trace_file.cc \
  optimizer/daemon/invisible.cc \
  optimizer/daemon/options.cc \
  optimizer/daemon/seat.cc \
  protocol/place.cc \
  protocol/stage.cc

sluice-optimizer_SRCS := optimizer/main.cc $(OLDER_LIBC_SRCS) $(OPTIMIZER_PURE_SRCS) $(OPTIMIZER_IO_SRCS) $(OPTIMIZER_CORE_SRCS)
sluice-optimizer_LIBS := -l:liburing.a
ifeq ($(VARIANT),release)
sluice-optimizer_LDFLAGS := -static-libstdc++ -shared-libgcc
endif

$(B)/obj/optimizer/%: CPPFLAGS += -DFMT_HEADER_ONLY
