# Turns PROGRAMS, LIBRARIES and UNIT_TESTS into rules. For each NAME:
#   NAME_SRCS  sources, relative to the top     NAME_LIBS  what to link
#   NAME_DEPS  files that must be linked first  NAME_LDFLAGS  extra linker flags
# A program is built as $(B)/NAME, a unit test as $(B)/tests/NAME.

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

define link_rule
$(2): $$(call objects,$$($(1)_SRCS)) $$($(1)_DEPS)
	@mkdir -p $$(@D)
	@[ "$(V)" = 1 ] || echo "  LINK $$@"
	$$(Q)$$(CXX) $$($(1)_SAN) $(3) $$(filter %.o,$$^) -o $$@ $$(LDFLAGS) $$($(1)_LDFLAGS) $$($(1)_LIBS)
ALL_OBJECTS += $$(call objects,$$($(1)_SRCS))
ALL_TARGETS += $(2)
endef

$(foreach p,$(PROGRAMS),$(eval $(p)_SAN := $(SAN))$(eval $(call link_rule,$(p),$(B)/$(p),)))
$(foreach l,$(LIBRARIES),$(eval $(l)_SAN := $(SAN))$(eval $(call link_rule,$(l),$(B)/$(l),-shared)))
$(foreach t,$(UNIT_TESTS),$(eval $(t)_SAN := $(SAN))$(eval $(t)_LIBS += -lgtest -lgtest_main)\
  $(eval $(call link_rule,$(t),$(B)/tests/$(t),)))

.PHONY: programs unit-tests
programs: $(PROGRAMS:%=$(B)/%) $(LIBRARIES:%=$(B)/%)
unit-tests: $(UNIT_TESTS:%=$(B)/tests/%)

-include $(sort $(ALL_OBJECTS:.o=.d))
