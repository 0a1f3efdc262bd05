// Every program, with or without data, pays for the library's page faults and relocations at start
// and end. Variables that are accessed then are placed together, in a page that the loader touches
// anyway; large variables stay untouched until the program reads data.
#pragma once

#define SLUICE_TOUCHED_AT_START __attribute__((section("sluice_start")))
