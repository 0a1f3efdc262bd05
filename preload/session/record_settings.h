// The file that the job's samples are recorded in (SLUICE_RECORD, protocol/trace.h). The library
// opens it, since the job's rights are what counts, and hands it to the optimizer, which writes.
#pragma once

namespace sluice::preload {

// Empties the file, once in the life of a job: children, exec'd ones too, find a + in front of the
// path in their environment, and add to it. A file that cannot be written costs one line, and
// recording is off, for children too. Constructor only.
void begin_recording();

// A descriptor of the file for one session, the caller's to close; -1: nothing is to be recorded,
// or it cannot be opened. Any thread.
int open_recording();

}  // namespace sluice::preload
