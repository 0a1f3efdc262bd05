# sluice-lmdb: makes and inspects LMDB data sets.

PROGRAMS += sluice-lmdb
DATUM := $(B)/gen/lmdb_tools/datum.pb
sluice-lmdb_SRCS := $(wildcard lmdb_tools/*.cc) $(DATUM).cc
sluice-lmdb_ARCHIVES := lmdb protocol
sluice-lmdb_LIBS := -llmdb -lprotobuf -ljpeg -lpng -lz

$(DATUM).cc $(DATUM).h &: lmdb_tools/datum.proto
	@mkdir -p $(@D)
	@[ "$(V)" = 1 ] || echo "  GEN  $(DATUM).cc"
	$(Q)protoc --cpp_out=$(B)/gen $<

# Before a first compilation has listed its headers, no rule says that this file needs the generated
# one.
$(B)/obj/lmdb_tools/datum.cc.o: | $(DATUM).h

$(B)/obj/lmdb_tools/%.o: CPPFLAGS += -DFMT_HEADER_ONLY
