// LD_PRELOAD, as this process's children inherit it.
#pragma once

namespace sluice::preload {

// Makes a relative path of this library absolute: a child with another working directory would not
// find "build/libsluice.so". Constructor only.
void make_preload_absolute();

}  // namespace sluice::preload
