# Sluice. `make demo` and `make check` do all of their own set-up; `make help` lists the rest.
# Each folder's module.mk names its programs and tests; scripts/rules.mk turns them into rules.

VARIANT ?= release
ifeq ($(VARIANT),release)
B := build
OPTIMIZE := -O2 -g
else
B := build/$(VARIANT)
# Sanitizers need no more: half the time to build of -O2 -g, whose checks are the same.
OPTIMIZE := -O1 -g1
endif
V ?= 0
Q := $(if $(filter 1,$(V)),,@)

CXX := g++
CPPFLAGS += -I. -I$(B)/gen -D_GNU_SOURCE
CXXFLAGS += -std=c++20 $(OPTIMIZE) -fPIC -Wall -Wextra -Werror -Wno-missing-field-initializers
CXXFLAGS += -fno-omit-frame-pointer -MMD -MP
CFLAGS += -std=gnu11 -O1 -g -fPIC -Wall -Wextra -Werror -MMD -MP
LDFLAGS += -Wl,-z,defs -pthread
SAN_asan := -fsanitize=address,undefined -fno-sanitize-recover=undefined
SAN_tsan := -fsanitize=thread
SAN := $(SAN_$(VARIANT))
PREFIX ?= /usr/local

PROGRAMS :=
LIBRARIES :=
ARCHIVES :=

.PHONY: all
all: programs

# The objects of sources; modules give flags to theirs.
objects = $(patsubst %,$(B)/obj/%.o,$(1))

MODULES := protocol policy lmdb preload optimizer lmdb_tools cli bench tests
include $(wildcard $(MODULES:%=%/module.mk))
include scripts/rules.mk

.PHONY: setup demo check check-long bench bench-harm bench-formats asan tsan format lint install dist clean help
setup: ## install what a build needs (Debian 12)
	$(Q)scripts/setup build

demo: ## set up, build, and show a cold job beside a warm one
	$(Q)scripts/setup build demo
	$(Q)$(MAKE) --no-print-directory -j2 all
	$(Q)scripts/demo

check: ## set up, build, run the tests; ends with one line of counts
	$(Q)scripts/setup build check torch2
	$(Q)scripts/check

check-long: ## the tests that check leaves out: all configurations, stress, 20,000 random programs
	$(Q)scripts/setup build check
	$(Q)scripts/check --long

bench: ## every figure, into build/bench.json (bench-NAME for one)
	$(Q)scripts/setup build bench gluster stack
	$(Q)$(MAKE) --no-print-directory -j2 all
	$(Q)scripts/bench

bench-harm: ## jobs not written for Sluice, with it and without; about an hour
	$(Q)scripts/setup build harm
	$(Q)$(MAKE) --no-print-directory -j2 all
	$(Q)scripts/bench-harm

bench-formats: ## how fast model weights load from slow storage; groups of at most 40 minutes
	$(Q)scripts/setup build bench formats
	$(Q)$(MAKE) --no-print-directory -j2 all
	$(Q)scripts/bench-formats

bench-%:
	$(Q)scripts/setup build bench gluster stack
	$(Q)$(MAKE) --no-print-directory -j2 all
	$(Q)scripts/bench $*

asan: ## build everything with the address and undefined-behaviour sanitizers, run the tests
	$(Q)scripts/setup build check
	$(Q)scripts/sanitized asan

tsan: ## the same with the thread sanitizer
	$(Q)scripts/setup build check
	$(Q)scripts/sanitized tsan

format: ## rewrite the sources in the tree's format
	$(Q)scripts/lint --format

lint: ## clang-format, clang-tidy, ruff and the rules of the tree
	$(Q)scripts/setup check lint
	$(Q)scripts/lint

install: all ## into PREFIX (/usr/local)
	$(Q)scripts/install "$(DESTDIR)$(PREFIX)"

dist: ## a wheel and a Debian package, in dist/
	$(Q)scripts/setup build dist
	$(Q)$(MAKE) --no-print-directory -j2 all
	$(Q)scripts/dist

clean: ## remove build/ and dist/
	$(Q)rm -rf build dist

help:
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed 's/:.*## /\t/' | sort
