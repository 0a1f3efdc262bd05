# The executor of tests/differential: one C program that knows nothing of Sluice but its sluice.h.

EXECUTOR_SRCS := $(wildcard tests/differential/*.c)

$(B)/victims/differential: $(EXECUTOR_SRCS) tests/differential/executor.h
	@mkdir -p $(@D)
	@[ "$(V)" = 1 ] || echo "  CC   $@"
	$(Q)gcc -D_GNU_SOURCE -I. $(filter-out -MMD -MP,$(CFLAGS)) $(EXECUTOR_SRCS) -o $@ -pthread -luring

victims: $(B)/victims/differential
