# All of `sluice` except its main().
ARCHIVES += cli
cli.a_SRCS := $(filter-out cli/main.cc,$(wildcard cli/*.cc)) cli/config_loader/config_reader.cc

PROGRAMS += sluice
sluice_SRCS := cli/main.cc $(OLDER_LIBC_SRCS)
# The doctor predicts the optimizer's budget with the optimizer's own code, and `sluice chunks` reads
# packs with its reader.
sluice_ARCHIVES := cli optimizer policy protocol
# The C++ runtime and fmt are compiled in: `sluice run` starts sooner, and an installed program
# needs no library but the C library and its unwinder. libgcc_s stays shared: the static one
# would need the building machine's C library (_dl_find_object, 2.35).
ifeq ($(VARIANT),release)
sluice_LDFLAGS := -static-libstdc++ -shared-libgcc
else
# A shared sanitizer runtime refuses to start after a preloaded library, which is the case for
# `sluice run` under `sluice run`.
sluice_LDFLAGS := -static-lib$(VARIANT)
endif
$(B)/obj/cli/%.o: CPPFLAGS += -DFMT_HEADER_ONLY

# Files that are included in the program as text: NAME.inc has them as the constant that it is given.
CLI_TEXTS := $(B)/gen/cli/simulate_picture.inc $(B)/gen/cli/report_style.inc
# as_text(constant): the first prerequisite.
as_text = { echo 'constexpr const char* $(1) = R"TEXT('; cat $<; echo ')TEXT";'; } > $@
$(B)/gen/cli/simulate_picture.inc: scripts/simulate_picture.py
	@mkdir -p $(@D)
	$(Q)$(call as_text,kSimulatePicture)
$(B)/gen/cli/report_style.inc: cli/report.css
	@mkdir -p $(@D)
	$(Q)$(call as_text,kReportStyle)
# Before a first compilation has listed its headers, no rule says that these files need the generated
# ones.
$(B)/obj/cli/simulate_picture.cc.o $(B)/obj/cli/report_page.cc.o: | $(CLI_TEXTS)

LIBRARIES += libsluice_config.so
libsluice_config.so_SRCS := cli/config_loader/config_loader.cc cli/config_loader/config_reader.cc \
  $(OLDER_LIBC_SRCS)
# It is loaded into a foreign process, and must neither use nor replace that process's C++ runtime.
# libgcc_s stays shared, so that one unwinder knows every frame.
libsluice_config.so_LDFLAGS := -static-libstdc++ -Wl,--exclude-libs,ALL \
  -Wl,--version-script=cli/config_loader/exports.map
$(B)/libsluice_config.so: cli/config_loader/exports.map
$(B)/obj/cli/config_loader/%.o: CXXFLAGS += -fvisibility=hidden
# No sanitizer: the programs into which it is loaded were built without one.
$(B)/obj/cli/config_loader/%.o: SAN :=
$(B)/libsluice_config.so: libsluice_config.so_SAN :=
