# What the adapter's tests preload in the library's place; without sanitizers, for any Python.
RECORDER := $(B)/tests-adapters/recorder.so

$(RECORDER): tests/adapters/recorder.c protocol/sluice.h
	@mkdir -p $(@D)
	@[ "$(V)" = 1 ] || echo "  CC   $@"
	$(Q)gcc -D_GNU_SOURCE -I. $(filter-out -MMD -MP,$(CFLAGS)) -shared $< -ldl -o $@

victims: $(RECORDER)
