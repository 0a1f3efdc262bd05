// Where the optimizer of this job is found, and with which options the job comes to it.
#pragma once

#include <cstddef>

namespace sluice::preload {

struct Place {
  char socket[108] = {};  // as long as an address may be
  char folder[108] = {};  // that it lies in
};

// False: SLUICE_SOCKET is no absolute path, or too long a one. One thread at a time; not from a
// signal handler.
bool find_place(Place* place);

// The job's options as "name=value" lines, those that were given and are good, into out[0..size),
// and how many bytes they take.
size_t options_text(char* out, size_t size);

}  // namespace sluice::preload
