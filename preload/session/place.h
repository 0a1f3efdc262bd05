// Where the socket of this job's optimizer is, and the options that the job sends it.
#pragma once

#include <cstddef>

namespace sluice::preload {

struct Place {
  char socket[108] = {};  // the size of sockaddr_un::sun_path
  char folder[108] = {};  // of the socket
};

// False: SLUICE_SOCKET is not an absolute path, or is too long. One thread at a time; not from a
// signal handler.
bool find_place(Place* place);

// Writes the job's options that were given and are valid as "name=value" lines into out[0..size),
// and returns the number of bytes.
size_t options_text(char* out, size_t size);

}  // namespace sluice::preload
