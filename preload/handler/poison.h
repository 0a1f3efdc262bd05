// What no file of this room may name, since its code runs inside a signal handler, at any
// instruction of the job: whatever allocates, takes a lock of libc's, or formats. Included last,
// after the headers, which may declare these; scripts/lint sees that every .cc file here does.
#pragma once

#pragma GCC poison malloc calloc realloc free strdup posix_memalign
#pragma GCC poison printf fprintf sprintf snprintf vsnprintf vfprintf puts fputs fopen fwrite
#pragma GCC poison pthread_mutex_lock pthread_rwlock_rdlock pthread_rwlock_wrlock pthread_cond_wait
#pragma GCC poison dlopen dlsym dladdr getenv exit abort
