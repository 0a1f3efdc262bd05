# For programs that link libstdc++ statically.
OLDER_LIBC_SRCS := protocol/older_libc.cc
# Without sanitizers: it is also part of a library that has none.
$(B)/obj/protocol/older_libc.cc.o: SAN :=
PROTOCOL_SRCS := $(filter-out $(OLDER_LIBC_SRCS),$(wildcard protocol/*.cc))

ARCHIVES += protocol
protocol.a_SRCS := $(PROTOCOL_SRCS)
