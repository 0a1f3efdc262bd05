PROTOCOL_SRCS := protocol/importance.cc protocol/options.cc protocol/place.cc protocol/stage.cc
# For programs that carry libstdc++ in themselves.
OLDER_LIBC_SRCS := protocol/older_libc.cc
