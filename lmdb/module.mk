# The reader of data.mdb, shared by the optimizer and sluice-lmdb; it needs no liblmdb.
ARCHIVES += lmdb
lmdb.a_SRCS := $(wildcard lmdb/*.cc)
$(B)/obj/lmdb/%.o: CPPFLAGS += -DFMT_HEADER_ONLY
