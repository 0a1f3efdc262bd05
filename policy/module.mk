# What is decided, without I/O, clock or threads: the sidecar, `sluice simulate`, tests and benches
# link it.
ARCHIVES += policy
policy.a_SRCS := $(wildcard policy/*/*.cc)
