// The version of everything in protocol/ that two processes must agree on.
#pragma once

#include <cstdint>

namespace sluice::protocol {

// Increment whenever a struct, an enumerator or the meaning of a field in ring.h or control.h
// changes. It is part of the socket's name, so that jobs and optimizers of two versions can
// coexist, and it is checked again in every handshake.
inline constexpr uint32_t kVersion = 23;

}  // namespace sluice::protocol
