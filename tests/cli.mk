UNIT_TESTS += options_test place_test
options_test_SRCS := tests/unit/options_test.cc protocol/options.cc
place_test_SRCS := tests/unit/place_test.cc protocol/place.cc
