# unit/ starts no process; process/ does, most often the sidecar.
TESTS := $(patsubst tests/%.cc,%,$(wildcard tests/unit/*_test.cc tests/process/*_test.cc))
ARCHIVES += tests
tests.a_SRCS := $(filter-out %_test.cc,$(wildcard tests/unit/*.cc tests/process/*.cc)) tests/replay/simulator.cc
TEST_ARCHIVES := tests cli optimizer policy lmdb slowfs protocol
TEST_LIBS := -lgtest -lgtest_main -l:liburing.a -llmdb

$(patsubst %,$(B)/tests/%,$(filter process/%,$(TESTS))): | $(B)/sluice-optimizer

# Recorded events in, plans out: tests/replay/plans compares them with the golden files.
PROGRAMS += optimizer-replay
optimizer-replay_SRCS := tests/replay/replay.cc
optimizer-replay_ARCHIVES := tests optimizer policy protocol

# libFuzzer, by clang, with both sanitizers whatever the variant; sources compiled apart.
FUZZERS := $(addprefix $(B)/fuzz/,optimizer_input pack_file tensor_list)

$(B)/fuzz/optimizer_input: $(wildcard optimizer/control/*.cc) $(policy.a_SRCS) $(PROTOCOL_SRCS)
$(B)/fuzz/pack_file: $(addprefix optimizer/packs/,pack_file.cc pack_folder.cc pack_head.cc)
$(B)/fuzz/tensor_list: $(wildcard policy/weights/*.cc)
$(FUZZERS): $(B)/fuzz/%: tests/fuzz/%.cc $(wildcard policy/*/*.h optimizer/*/*.h optimizer/*/*/*.h protocol/*.h)
	@mkdir -p $(@D)
	@[ "$(V)" = 1 ] || echo "  FUZZ $@"
	$(Q)clang++-14 $(filter -I% -D%,$(CPPFLAGS)) -std=c++20 -O1 -g -fno-omit-frame-pointer \
	  -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
	  $(filter %.cc,$^) -o $@ -pthread

.PHONY: fuzzers
fuzzers: $(FUZZERS)

include tests/adapters.mk tests/differential.mk tests/victims.mk
