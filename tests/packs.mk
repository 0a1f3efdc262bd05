UNIT_TESTS += pack_file_test pack_index_test pack_store_test
pack_file_test_SRCS := tests/unit/pack_file_test.cc $(PACK_FILE_SRCS)
pack_index_test_SRCS := tests/unit/pack_index_test.cc optimizer/packs/pack_index.cc
pack_store_test_SRCS := tests/unit/pack_store_test.cc tests/unit/pack_repacking_test.cc $(PACK_SRCS)
UNIT_TESTS += pack_version_test
pack_version_test_SRCS := tests/unit/pack_version_test.cc optimizer/stage/pack_version.cc \
  optimizer/io/reopen.cc optimizer/io/residency.cc optimizer/io/memory.cc $(OPTIMIZER_PURE_SRCS)
