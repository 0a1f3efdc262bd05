// libc's declarations of all hooked functions, and declarations that no header has: the checked
// variants that fortified programs call, and the __xstat family of programs built against an
// older glibc.
#pragma once

#include <aio.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

extern "C" {
int capset(cap_user_header_t, const cap_user_data_t) noexcept;
int pivot_root(const char*, const char*) noexcept;
int __open_2(const char*, int);
int __open64_2(const char*, int);
int __openat_2(int, const char*, int);
int __openat64_2(int, const char*, int);
ssize_t __read_chk(int, void*, size_t, size_t);
ssize_t __pread_chk(int, void*, size_t, off_t, size_t);
ssize_t __pread64_chk(int, void*, size_t, off64_t, size_t);
size_t __fread_chk(void*, size_t, size_t, size_t, FILE*);
size_t __fread_unlocked_chk(void*, size_t, size_t, size_t, FILE*);
ssize_t __readlink_chk(const char*, char*, size_t, size_t) noexcept;
ssize_t __readlinkat_chk(int, const char*, char*, size_t, size_t) noexcept;
char* __realpath_chk(const char*, char*, size_t) noexcept;
int __printf_chk(int, const char*, ...);
int __fprintf_chk(FILE*, int, const char*, ...);
int __vprintf_chk(int, const char*, va_list);
int __vfprintf_chk(FILE*, int, const char*, va_list);
int __dprintf_chk(int, int, const char*, ...);
int __vdprintf_chk(int, int, const char*, va_list);
[[noreturn]] void __longjmp_chk(jmp_buf, int);
int __ppoll_chk(struct pollfd*, nfds_t, const struct timespec*, const sigset_t*, size_t);
sighandler_t bsd_signal(int, sighandler_t);
int __fxstat(int, int, struct stat*);
int __fxstat64(int, int, struct stat64*);
int __xstat(int, const char*, struct stat*);
int __xstat64(int, const char*, struct stat64*);
int __lxstat(int, const char*, struct stat*);
int __lxstat64(int, const char*, struct stat64*);
int __fxstatat(int, int, const char*, struct stat*, int);
int __fxstatat64(int, int, const char*, struct stat64*, int);
}
