// The file that the job's samples are recorded in (SLUICE_RECORD, protocol/trace.h). The library
// opens it with the job's access rights and passes it to the optimizer, which writes.
#pragma once

namespace sluice::preload {

// Truncates the file, once in the life of a job: children, exec'd ones too, find a + in front of
// the path in their environment, and append to it. If the file cannot be written, one warning is
// printed and recording is off, for children too. Constructor only.
void begin_recording();

// A descriptor of the file for one session, which the caller closes; -1: recording is off, or the
// file cannot be opened. Any thread.
int open_recording();

}  // namespace sluice::preload
