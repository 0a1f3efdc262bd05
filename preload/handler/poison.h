// Functions that no file in this directory may name: those that allocate, take a lock of libc, or
// format. The code here runs inside a signal handler, at any instruction of the job. Included last,
// after the headers, which may declare them; scripts/lint checks that every .cc file here does so.
#pragma once

#pragma GCC poison malloc calloc realloc free strdup posix_memalign
#pragma GCC poison printf fprintf sprintf snprintf vsnprintf vfprintf puts fputs fopen fwrite
#pragma GCC poison pthread_mutex_lock pthread_rwlock_rdlock pthread_rwlock_wrlock pthread_cond_wait
#pragma GCC poison dlopen dlsym dladdr getenv exit abort
