# The sidecar, all but its main().
ARCHIVES += optimizer
optimizer.a_SRCS := optimizer/sidecar.cc $(wildcard optimizer/*/*.cc optimizer/*/*/*.cc)

PROGRAMS += sluice-optimizer
sluice-optimizer_SRCS := optimizer/main.cc $(OLDER_LIBC_SRCS)
sluice-optimizer_ARCHIVES := optimizer policy lmdb protocol
sluice-optimizer_LIBS := -l:liburing.a
ifeq ($(VARIANT),release)
sluice-optimizer_LDFLAGS := -static-libstdc++ -shared-libgcc
endif

$(B)/obj/optimizer/%: CPPFLAGS += -DFMT_HEADER_ONLY
