UNIT_TESTS += history_test report_test
history_test_SRCS := tests/unit/history_test.cc optimizer/core/history.cc $(OPTIMIZER_PURE_SRCS)
report_test_SRCS := tests/unit/report_test.cc $(filter-out cli/report.cc,$(wildcard cli/report*.cc)) \
  cli/text.cc
UNIT_TESTS += savings_test
savings_test_SRCS := tests/unit/savings_test.cc optimizer/plan/savings.cc
