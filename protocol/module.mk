# For programs that link libstdc++ statically.
OLDER_LIBC_SRCS := protocol/older_libc.cc
PROTOCOL_SRCS := $(filter-out $(OLDER_LIBC_SRCS),$(wildcard protocol/*.cc))

ARCHIVES += protocol
protocol.a_SRCS := $(PROTOCOL_SRCS)
