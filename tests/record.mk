UNIT_TESTS += record_test optimizer_record_test
record_test_SRCS := tests/unit/record_test.cc optimizer/record/recorder.cc \
  optimizer/record/trace_file.cc
optimizer_record_test_SRCS := tests/unit/optimizer_record_test.cc $(OPTIMIZER_CLIENT_SRCS)
optimizer_record_test_DEPS := $(B)/sluice-optimizer
