# The storage stand-in, and the programs behind the figures.
PROGRAMS += bench/slowfs
bench/slowfs_SRCS := $(addprefix bench/slowfs/,filesystem.cc gate.cc inodes.cc kernel_device.cc \
  ledger.cc listing.cc main.cc pacer.cc read_ahead.cc reading.cc service.cc settings.cc)
bench/slowfs_LIBS := -lfuse3
UNIT_TESTS += slowfs_service_test
slowfs_service_test_SRCS := bench/slowfs/service_test.cc bench/slowfs/service.cc

# The jobs that the figures are measured with.
PROGRAMS += bench/reader bench/make-data bench/arm bench/start-cost bench/touch-memory bench/tell
bench/reader_SRCS := $(addprefix bench/reader/,reader.c scan_file.c scan_lmdb.c)
bench/reader_LIBS := -llmdb
bench/make-data_SRCS := bench/reader/make_data.c
bench/make-data_LIBS := -llmdb
bench/arm_SRCS := bench/reader/arm.c
bench/start-cost_SRCS := bench/reader/start_cost.c
LIBRARIES += bench/empty.so
bench/empty.so_SRCS := bench/reader/empty.c
bench/empty.so_LDFLAGS := -Wl,--as-needed
bench/tell_SRCS := bench/reader/tell.c
bench/tell_LIBS := -ldl
bench/touch-memory_SRCS := bench/reader/touch_memory.c
PROGRAMS += bench/open-files
bench/open-files_SRCS := bench/reader/open_files.c
bench/open-files_LIBS := -ldl
PROGRAMS += bench/opened-ahead
bench/opened-ahead_SRCS := bench/reader/opened_ahead.c
PROGRAMS += bench/swap
bench/swap_SRCS := bench/reader/swap.cc $(IMPORTANCE_SRCS) $(POLICY_SRCS)
PROGRAMS += bench/selection
bench/selection_SRCS := bench/reader/selection.cc $(IMPORTANCE_SRCS) $(POLICY_SRCS)
PROGRAMS += bench/two-jobs
bench/two-jobs_SRCS := bench/reader/two_jobs.cc $(IMPORTANCE_SRCS) $(POLICY_SRCS) \
  $(addprefix optimizer/samples/,file_fitness.cc file_table.cc sample_book.cc sample_book_memory.cc sample_order.cc sample_set.cc)
