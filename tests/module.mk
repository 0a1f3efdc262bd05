include $(filter-out tests/module.mk,$(wildcard tests/*.mk))
