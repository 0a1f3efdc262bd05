// What every program pays for, whether it meets data or not, is its page faults and relocations at
// the start and the end. Variables that are then read or written lie together, in a page that the
// loader touches anyway; everything large is left alone until there is data.
#pragma once

#define SLUICE_TOUCHED_AT_START __attribute__((section("sluice_start")))
