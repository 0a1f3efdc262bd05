# The victims: programs that know nothing of Sluice, run by tests/victims/drive without and with
# it. Each is one C file, built without sanitizers whatever the variant.

VICTIM_SRCS := $(wildcard tests/victims/*.c tests/victims/*.cc)
VICTIMS := $(patsubst tests/victims/%,$(B)/victims/%,$(basename $(VICTIM_SRCS)))

$(B)/victims/lmdb_%: VICTIM_LIBS := -llmdb

$(B)/victims/%: tests/victims/%.c $(wildcard tests/victims/*.h)
	@mkdir -p $(@D)
	@[ "$(V)" = 1 ] || echo "  CC   $@"
	$(Q)gcc -D_GNU_SOURCE -I. $(filter-out -MMD -MP,$(CFLAGS)) $(VICTIM_FLAGS) $< -o $@ -pthread $(VICTIM_LIBS)

$(B)/victims/%: tests/victims/%.cc $(wildcard tests/victims/*.h)
	@mkdir -p $(@D)
	@[ "$(V)" = 1 ] || echo "  CXX  $@"
	$(Q)$(CXX) $(filter-out -MMD -MP,$(CXXFLAGS)) -I. $< -o $@ -pthread

# The same reader, built in ways of its own.
$(B)/victims/map_scan_static: VICTIM_FLAGS := -static
$(B)/victims/handler_longjmp_asan $(B)/victims/map_scan_asan: VICTIM_FLAGS := -fsanitize=address -static-libasan
$(B)/victims/deepbind-plugin.so: VICTIM_FLAGS := -shared

# Static pattern rules: which implicit rule fits several suffixes is not ours to guess.
STATIC_VICTIMS := $(B)/victims/map_scan_static
ASAN_VICTIMS := $(B)/victims/handler_longjmp_asan $(B)/victims/map_scan_asan
$(STATIC_VICTIMS): $(B)/victims/%_static: tests/victims/%.c $(wildcard tests/victims/*.h)
	@mkdir -p $(@D)
	@[ "$(V)" = 1 ] || echo "  CC   $@"
	$(Q)gcc -D_GNU_SOURCE -I. $(filter-out -MMD -MP,$(CFLAGS)) $(VICTIM_FLAGS) $< -o $@ -pthread

$(ASAN_VICTIMS): $(B)/victims/%_asan: tests/victims/%.c $(wildcard tests/victims/*.h)
	@mkdir -p $(@D)
	@[ "$(V)" = 1 ] || echo "  CC   $@"
	$(Q)gcc -D_GNU_SOURCE -I. $(filter-out -MMD -MP,$(CFLAGS)) $(VICTIM_FLAGS) $< -o $@ -pthread

$(B)/victims/map_scan_clang_asan: $(B)/victims/%_clang_asan: tests/victims/%.c $(wildcard tests/victims/*.h)
	@mkdir -p $(@D)
	@[ "$(V)" = 1 ] || echo "  CC   $@"
	$(Q)clang-14 -D_GNU_SOURCE -I. -O1 -g -fsanitize=address $< -o $@ -pthread

$(B)/victims/deepbind-plugin.so: tests/victims/plugin/plugin.c $(wildcard tests/victims/*.h)
	@mkdir -p $(@D)
	$(Q)gcc -D_GNU_SOURCE -I. $(filter-out -MMD -MP,$(CFLAGS)) $(VICTIM_FLAGS) $< -o $@

.PHONY: victims
victims: $(VICTIMS) $(B)/victims/deepbind-plugin.so \
  $(addprefix $(B)/victims/,map_scan_static map_scan_asan handler_longjmp_asan map_scan_clang_asan)
