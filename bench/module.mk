# The storage stand-in, and the programs behind the figures.
ARCHIVES += slowfs
slowfs.a_SRCS := $(filter-out bench/slowfs/main.cc,$(wildcard bench/slowfs/*.cc))
PROGRAMS += bench/slowfs
bench/slowfs_SRCS := bench/slowfs/main.cc
bench/slowfs_ARCHIVES := slowfs
bench/slowfs_LIBS := -lfuse3

# The jobs that the figures are measured with.
PROGRAMS += bench/reader bench/make-data bench/arm bench/start-cost bench/touch-memory bench/publish
bench/reader_SRCS := $(addprefix bench/reader/,reader.c scan_file.c scan_lmdb.c)
bench/reader_LIBS := -llmdb
bench/make-data_SRCS := bench/reader/make_data.c
bench/make-data_LIBS := -llmdb
bench/arm_SRCS := bench/reader/arm.c
bench/start-cost_SRCS := bench/reader/start_cost.c
LIBRARIES += bench/empty.so
bench/empty.so_SRCS := bench/reader/empty.c
bench/empty.so_LDFLAGS := -Wl,--as-needed
bench/publish_SRCS := bench/reader/publish.c
bench/publish_LIBS := -ldl
bench/touch-memory_SRCS := bench/reader/touch_memory.c
PROGRAMS += bench/open-files
bench/open-files_SRCS := bench/reader/open_files.c
bench/open-files_LIBS := -ldl
PROGRAMS += bench/opened-ahead
bench/opened-ahead_SRCS := bench/reader/opened_ahead.c
PROGRAMS += bench/swap bench/selection bench/two-jobs bench/log-plan bench/read-chunks
bench/swap_SRCS := bench/reader/swap.cc
bench/selection_SRCS := bench/reader/selection.cc
bench/two-jobs_SRCS := bench/reader/two_jobs.cc
bench/swap_ARCHIVES := policy
bench/selection_ARCHIVES := policy
bench/two-jobs_ARCHIVES := policy protocol
bench/log-plan_SRCS := bench/reader/log_plan.cc
bench/log-plan_ARCHIVES := policy
bench/read-chunks_SRCS := bench/reader/read_chunks.cc
bench/read-chunks_ARCHIVES := optimizer policy protocol
