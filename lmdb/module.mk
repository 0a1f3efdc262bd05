# The reader of data.mdb that the sidecar and sluice-lmdb share; it needs no liblmdb.
ARCHIVES += lmdb
lmdb.a_SRCS := $(wildcard lmdb/*.cc)
$(B)/obj/lmdb/%.o: CPPFLAGS += -DFMT_HEADER_ONLY
