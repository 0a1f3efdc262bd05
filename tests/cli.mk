UNIT_TESTS += options_test importance_option_test place_test
options_test_SRCS := tests/unit/options_test.cc protocol/options.cc protocol/importance.cc
importance_option_test_SRCS := tests/unit/importance_option_test.cc protocol/options.cc protocol/importance.cc
place_test_SRCS := tests/unit/place_test.cc protocol/place.cc
