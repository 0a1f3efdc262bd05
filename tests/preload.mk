UNIT_TESTS += cell_test ring_test
cell_test_SRCS := tests/unit/cell_test.cc
ring_test_SRCS := tests/unit/ring_test.cc
