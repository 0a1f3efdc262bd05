OPTIMIZER_CLIENT_SRCS := tests/unit/optimizer_client.cc optimizer/io/residency.cc

UNIT_TESTS += optimizer_session_test
optimizer_session_test_SRCS := tests/unit/optimizer_session_test.cc $(OPTIMIZER_CLIENT_SRCS)
optimizer_session_test_DEPS := $(B)/sluice-optimizer

UNIT_TESTS += optimizer_tracker_test optimizer_plan_test
optimizer_tracker_test_SRCS := tests/unit/optimizer_tracker_test.cc optimizer/streams/tracker.cc
optimizer_plan_test_SRCS := tests/unit/optimizer_plan_test.cc $(OPTIMIZER_PURE_SRCS)

SIMULATOR_SRCS := tests/replay/simulator.cc $(OPTIMIZER_PURE_SRCS)

UNIT_TESTS += file_fitness_test uptake_test
uptake_test_SRCS := tests/unit/uptake_test.cc optimizer/stage/uptake.cc
file_fitness_test_SRCS := tests/unit/file_fitness_test.cc optimizer/samples/file_table.cc optimizer/samples/file_fitness.cc

UNIT_TESTS += harm_watch_test
harm_watch_test_SRCS := tests/unit/harm_watch_test.cc optimizer/plan/harm_watch.cc

UNIT_TESTS += samples_test optimizer_samples_test optimizer_hostile_test optimizer_limits_test patience_test
patience_test_SRCS := tests/unit/patience_test.cc
optimizer_limits_test_SRCS := tests/unit/optimizer_limits_test.cc $(OPTIMIZER_CLIENT_SRCS)
optimizer_limits_test_DEPS := $(B)/sluice-optimizer
optimizer_samples_test_SRCS := tests/unit/optimizer_samples_test.cc $(OPTIMIZER_CLIENT_SRCS)
optimizer_samples_test_DEPS := $(B)/sluice-optimizer
optimizer_hostile_test_SRCS := tests/unit/optimizer_hostile_test.cc $(OPTIMIZER_CLIENT_SRCS)
optimizer_hostile_test_DEPS := $(B)/sluice-optimizer
samples_test_SRCS := tests/unit/samples_test.cc tests/unit/samples_memory_test.cc \
  $(addprefix optimizer/samples/,sample_book.cc sample_book_memory.cc file_fitness.cc file_table.cc sample_order.cc \
  sample_set.cc)

UNIT_TESTS += places_test
places_test_SRCS := tests/unit/places_test.cc optimizer/io/place_store.cc optimizer/samples/place_list.cc

UNIT_TESTS += lmdb_records_test key_guess_test row_guess_test
row_guess_test_SRCS := tests/unit/row_guess_test.cc \
  $(addprefix optimizer/samples/,row_guess.cc sample_guess.cc sample_set.cc)
LMDB_LISTING_SRCS := tests/unit/lmdb_files.cc optimizer/samples/lmdb_records.cc $(LMDB_READER_SRCS)
lmdb_records_test_SRCS := tests/unit/lmdb_records_test.cc $(LMDB_LISTING_SRCS)
lmdb_records_test_LIBS := -llmdb
key_guess_test_SRCS := tests/unit/key_guess_test.cc tests/unit/key_guess_doubts_test.cc \
  $(LMDB_LISTING_SRCS) $(addprefix optimizer/samples/,key_guess.cc key_scheme.cc sample_guess.cc \
  sample_set.cc)
key_guess_test_LIBS := -llmdb

UNIT_TESTS += optimizer_scheduler_test
UNIT_TESTS += records_kept_test
records_kept_test_SRCS := tests/unit/records_kept_test.cc $(SIMULATOR_SRCS)
UNIT_TESTS += sample_places_test
sample_places_test_SRCS := tests/unit/sample_places_test.cc $(SIMULATOR_SRCS)
UNIT_TESTS += runs_test
runs_test_SRCS := tests/unit/runs_test.cc $(SIMULATOR_SRCS)
optimizer_scheduler_test_SRCS := tests/unit/optimizer_scheduler_test.cc $(SIMULATOR_SRCS)

# Recorded events in, plans out: tests/replay/plans compares them with what was kept.
PROGRAMS += optimizer-replay
optimizer-replay_SRCS := tests/replay/replay.cc $(SIMULATOR_SRCS)

UNIT_TESTS += optimizer_parse_test optimizer_reader_test optimizer_engine_test optimizer_observer_test
optimizer_parse_test_SRCS := tests/unit/optimizer_parse_test.cc $(OPTIMIZER_PURE_SRCS)
optimizer_reader_test_SRCS := tests/unit/optimizer_reader_test.cc optimizer/core/ring_reader.cc
optimizer_engine_test_SRCS := tests/unit/optimizer_engine_test.cc $(OPTIMIZER_CLIENT_SRCS) \
  optimizer/io/uring_engine.cc optimizer/io/pool_engine.cc optimizer/daemon/log.cc
optimizer_engine_test_LIBS := -l:liburing.a
optimizer_observer_test_SRCS := tests/unit/optimizer_observer_test.cc $(OPTIMIZER_CLIENT_SRCS) \
  optimizer/observe/observer.cc optimizer/observe/page_table.cc optimizer/plan/interval_set.cc

UNIT_TESTS += optimizer_lifecycle_test optimizer_jobs_test
optimizer_lifecycle_test_SRCS := tests/unit/optimizer_lifecycle_test.cc $(OPTIMIZER_CLIENT_SRCS)
optimizer_lifecycle_test_DEPS := $(B)/sluice-optimizer
optimizer_jobs_test_SRCS := tests/unit/optimizer_jobs_test.cc $(OPTIMIZER_CLIENT_SRCS)
optimizer_jobs_test_DEPS := $(B)/sluice-optimizer

# libFuzzer, by clang, with both sanitizers whatever the variant; sources compiled apart.
FUZZERS := $(B)/fuzz/optimizer_input $(B)/fuzz/pack_file

$(B)/fuzz/optimizer_input: $(OPTIMIZER_PURE_SRCS)
$(B)/fuzz/pack_file: $(PACK_FILE_SRCS)
$(FUZZERS): $(B)/fuzz/%: tests/fuzz/%.cc $(wildcard optimizer/*/*.h protocol/*.h)
	@mkdir -p $(@D)
	@[ "$(V)" = 1 ] || echo "  FUZZ $@"
	$(Q)clang++-14 $(filter -I% -D%,$(CPPFLAGS)) -std=c++20 -O1 -g -fno-omit-frame-pointer \
	  -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
	  $(filter %.cc,$^) -o $@ -pthread

.PHONY: fuzzers
fuzzers: $(FUZZERS)

UNIT_TESTS += policies_test
policies_test_SRCS := tests/unit/policies_test.cc tests/unit/policies_tables_test.cc \
  tests/unit/policy_models.cc $(POLICY_SRCS)

UNIT_TESTS += importance_test importance_book_test importance_ranks_test icache_test systems_test
importance_book_test_SRCS := tests/unit/importance_book_test.cc $(POLICY_SRCS) $(IMPORTANCE_SRCS)
importance_ranks_test_SRCS := tests/unit/importance_ranks_test.cc $(POLICY_SRCS) $(IMPORTANCE_SRCS)
systems_test_SRCS := tests/unit/systems_test.cc $(POLICY_SRCS) $(IMPORTANCE_SRCS)
importance_test_SRCS := tests/unit/importance_test.cc $(POLICY_SRCS) $(IMPORTANCE_SRCS)
icache_test_SRCS := tests/unit/icache_test.cc $(POLICY_SRCS) $(IMPORTANCE_SRCS)

UNIT_TESTS += stage_plan_test stage_index_test mount_watch_test
mount_watch_test_SRCS := tests/unit/mount_watch_test.cc optimizer/stage/mount_watch.cc
stage_plan_test_SRCS := tests/unit/stage_plan_test.cc $(OPTIMIZER_PURE_SRCS)
stage_index_test_SRCS := tests/unit/stage_index_test.cc $(OPTIMIZER_PURE_SRCS) \
  $(addprefix optimizer/stage/,pack_version.cc stage_copy.cc stage_folder.cc stage_index.cc stage_watch.cc) \
  optimizer/io/memory.cc optimizer/io/reopen.cc optimizer/io/residency.cc protocol/stage.cc \
  $(PACK_SRCS)
