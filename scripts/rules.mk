# Turns ARCHIVES, PROGRAMS, LIBRARIES and TESTS into rules. For each NAME:
#   NAME_SRCS  sources, relative to the top     NAME_LIBS  what to link
#   NAME_DEPS  files that must be linked first  NAME_LDFLAGS  extra linker flags
#   NAME_ARCHIVES  archives of which what is needed is linked in
# A program is built as $(B)/NAME, an archive, whose sources are NAME.a_SRCS, as $(B)/lib/NAME.a. A
# test ROOM/NAME is tests/ROOM/NAME.cc, built as $(B)/tests/ROOM/NAME.

# An object appears whole: a compiler that is stopped in the middle may leave an empty one, which
# would be taken for done.
objects_as = -MF $(@:.o=.d) -MT $@ -c $< -o $@.part && mv $@.part $@

$(B)/obj/%.cc.o: %.cc
	@mkdir -p $(@D)
	@[ "$(V)" = 1 ] || echo "  CXX  $<"
	$(Q)$(CXX) $(CPPFLAGS) $(CXXFLAGS) $(SAN) $(EXTRA_CXXFLAGS) $(objects_as)

$(B)/obj/%.c.o: %.c
	@mkdir -p $(@D)
	@[ "$(V)" = 1 ] || echo "  CC   $<"
	$(Q)gcc $(CPPFLAGS) $(CFLAGS) $(EXTRA_CFLAGS) $(objects_as)

define archive_rule
$(B)/lib/$(1).a: $$(call objects,$$($(1).a_SRCS))
	@mkdir -p $$(@D)
	$$(Q)rm -f $$@ && ar rcs $$@ $$^
ALL_OBJECTS += $$(call objects,$$($(1).a_SRCS))
endef

define link_rule
$(2): $$(call objects,$$($(1)_SRCS)) $$($(1)_ARCHIVES:%=$(B)/lib/%.a) $$($(1)_DEPS)
	@mkdir -p $$(@D)
	@[ "$(V)" = 1 ] || echo "  LINK $$@"
	$$(Q)$$(CXX) $$($(1)_SAN) $(3) $$(filter %.o,$$^) -Wl,--start-group $$(filter %.a,$$^) -Wl,--end-group \
	  -o $$@ $$(LDFLAGS) $$($(1)_LDFLAGS) $$($(1)_LIBS)
ALL_OBJECTS += $$(call objects,$$($(1)_SRCS))
endef

$(foreach a,$(ARCHIVES),$(eval $(call archive_rule,$(a))))
$(foreach p,$(PROGRAMS),$(eval $(p)_SAN := $(SAN))$(eval $(call link_rule,$(p),$(B)/$(p),)))
$(foreach l,$(LIBRARIES),$(eval $(l)_SAN := $(SAN))$(eval $(call link_rule,$(l),$(B)/$(l),-shared)))
# A test links what it uses of all archives, and nothing else.
define test_rule
$(1)_SRCS := tests/$(1).cc
$(1)_SAN := $(SAN)
$(1)_ARCHIVES := $(TEST_ARCHIVES)
$(1)_LIBS := $(TEST_LIBS)
endef
$(foreach t,$(TESTS),$(eval $(call test_rule,$(t)))$(eval $(call link_rule,$(t),$(B)/tests/$(t),)))

.PHONY: programs unit-tests
programs: $(PROGRAMS:%=$(B)/%) $(LIBRARIES:%=$(B)/%)
unit-tests: $(TESTS:%=$(B)/tests/%)

-include $(sort $(ALL_OBJECTS:.o=.d))
