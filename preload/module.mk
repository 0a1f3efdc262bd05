PRELOAD_SRCS := $(wildcard preload/*/*.cc)

LIBRARIES += libsluice.so
libsluice.so_SRCS := $(PRELOAD_SRCS) $(PROTOCOL_SRCS)
# libgcc_s is never linked in: pthread_cancel must unwind through our frames with the one unwinder
# that the process has. Nor does the library depend on it: see preload/base/unwinder.h.
libsluice.so_DEPS := $(B)/gen/exports.map
libsluice.so_LDFLAGS := -static-libstdc++ -shared-libgcc -Wl,--as-needed -Wl,--version-script=$(B)/gen/exports.map \
  -Wl,-z,now -Wl,-z,noseparate-code -Wl,--exclude-libs,ALL -Wl,-soname,libsluice.so
libsluice.so_LIBS := -ldl

PRELOAD_FLAGS := -fvisibility=hidden -fvisibility-inlines-hidden -ftls-model=initial-exec \
  -fno-threadsafe-statics -fexceptions -fasynchronous-unwind-tables
$(call objects,$(PRELOAD_SRCS)): EXTRA_CXXFLAGS += $(PRELOAD_FLAGS)

# Hooks run where the application calls them, on a handler's alternate stack of 8 KiB too. What needs
# more, here left out, runs at the start, in calls of sluice.h, or on a stack of its own
# (preload/base/own_stack.h).
SMALL_FRAME := 2560
ROOMY := preload/data/datasets.cc preload/startup/loader_settings.cc preload/startup/python_late.cc \
  preload/startup/python_settings.cc preload/report/report.cc preload/base/settings.cc preload/session/begin.cc \
  preload/base/threads.cc preload/stage/leftover.cc preload/files/started.cc \
  $(addprefix preload/samples/,datasets.cc extents.cc importance.cc places.cc)
ifeq ($(VARIANT),release)
$(call objects,$(filter-out $(ROOMY),$(PRELOAD_SRCS))): \
  EXTRA_CXXFLAGS += -Wframe-larger-than=$(SMALL_FRAME)
endif

# What the library exports is what the table of hooks says.
$(B)/gen/exports.map: preload/base/real.h scripts/exports
	@mkdir -p $(@D)
	$(Q)scripts/exports $< > $@
