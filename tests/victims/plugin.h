// What deepbind.c asks its plugin.
#pragma once

#include <stdint.h>

uint64_t plugin_digest(const char* path, int take_signal);
