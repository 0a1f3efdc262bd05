// LD_PRELOAD, as our children will see it.
#pragma once

namespace sluice::preload {

// Makes a relative path of ours absolute: a child that starts in another folder would not find
// "build/libsluice.so". Constructor.
void make_preload_absolute();

}  // namespace sluice::preload
