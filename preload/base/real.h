// The table of hooks: every libc function that the library interposes. The table of real addresses
// and exports.map are made from it; a hook's signature is taken from libc's own declaration by
// decltype, so that it cannot drift.
//
// X(name): each function is resolved at its first call, and all of them before the process can have
// a signal handler, a second thread, a child or data: from then on none is resolved in a signal
// handler, under an allocator's lock or in a fork's child. A program that has none of these pays
// only for the functions that it calls.
#pragma once

#include <atomic>
#include <cstdint>

#include "preload/base/declarations.h"

// clang-format off
#define SLUICE_HOOKS_OPEN(X) \
  X(open) X(open64) X(openat) X(openat64) X(__open_2) X(__open64_2) X(__openat_2) \
  X(__openat64_2) X(creat) X(creat64) X(fopen) X(fopen64) X(freopen) X(freopen64) X(fdopen) \
  X(close) X(close_range) X(closefrom) X(fclose) X(dup) X(dup2) X(dup3) X(fcntl) X(fcntl64)
#define SLUICE_HOOKS_READ(X) \
  X(read) X(pread) X(pread64) X(readv) X(preadv) X(preadv64) X(preadv2) X(preadv64v2) \
  X(__read_chk) X(__pread_chk) X(__pread64_chk) X(fread) X(fread_unlocked) X(__fread_chk) \
  X(__fread_unlocked_chk) X(lseek) X(lseek64) X(fseek) X(fseeko) X(fseeko64) X(rewind) \
  X(fsetpos) X(fsetpos64) X(readahead) X(sendfile) X(sendfile64) X(splice) X(copy_file_range)
#define SLUICE_HOOKS_MEMORY(X) \
  X(mmap) X(mmap64) X(munmap) X(mremap) X(mprotect) X(pkey_mprotect) X(madvise) \
  X(posix_madvise) X(mlock) X(mlock2) X(mlockall) X(munlockall) X(remap_file_pages)
#define SLUICE_HOOKS_SIGNAL(X) \
  X(sigaction) X(signal) X(bsd_signal) X(sysv_signal) X(__sysv_signal) X(ssignal) X(sigset) \
  X(sigignore) X(sighold) X(sigrelse) X(siginterrupt) X(sigprocmask) X(pthread_sigmask) \
  X(sigblock) X(sigsetmask) X(siglongjmp) X(longjmp) X(_longjmp) X(__longjmp_chk) \
  X(sigpending) X(sigwait) X(sigwaitinfo) X(sigtimedwait) X(sigsuspend) X(pselect) X(ppoll) \
  X(__ppoll_chk) X(epoll_pwait) X(epoll_pwait2)
#define SLUICE_HOOKS_PROCESS(X) \
  X(pthread_create) X(pthread_cancel) X(fork) X(_Fork) X(vfork) X(clone) \
  X(posix_spawn) X(posix_spawnp) X(system) X(popen) X(execve) X(execv) X(execvp) \
  X(execvpe) X(execl) X(execle) X(execlp) X(execveat) X(fexecve) X(_exit) X(_Exit) X(quick_exit) X(dlopen) X(dlmopen)
#define SLUICE_HOOKS_WRITE(X) \
  X(write) X(pwrite) X(pwrite64) X(writev) X(pwritev) X(pwritev64) X(pwritev2) X(pwritev64v2) \
  X(send) X(sendto) X(sendmsg) X(sendmmsg) X(vmsplice) X(process_vm_readv) X(process_vm_writev) \
  X(syscall) X(aio_write) X(aio_write64) X(lio_listio) X(lio_listio64) X(mq_send) \
  X(mq_timedsend) X(msgsnd)
#define SLUICE_HOOKS_STDIO(X) \
  X(fwrite) X(fwrite_unlocked) X(fputs) X(fputs_unlocked) X(puts) X(printf) X(fprintf) \
  X(vprintf) X(vfprintf) X(dprintf) X(vdprintf) X(__printf_chk) X(__fprintf_chk) \
  X(__vprintf_chk) X(__vfprintf_chk) X(__dprintf_chk) X(__vdprintf_chk)
#define SLUICE_HOOKS_FD(X) \
  X(fstat) X(fstat64) X(__fxstat) X(__fxstat64) X(fstatfs) X(fstatfs64) X(fstatvfs) \
  X(fstatvfs64) X(flock) X(lockf) X(lockf64) X(ioctl) X(fchmod) X(fchown) X(futimens) X(futimes) \
  X(flistxattr)
#define SLUICE_HOOKS_PATH(X) \
  X(stat) X(stat64) X(lstat) X(lstat64) X(fstatat) X(fstatat64) X(statx) X(__xstat) X(__xstat64) \
  X(__lxstat) X(__lxstat64) X(__fxstatat) X(__fxstatat64) X(access) X(faccessat) X(euidaccess) \
  X(unlink) X(unlinkat) X(rename) X(renameat) X(renameat2) X(mkdir) X(mkdirat) X(rmdir) X(link) \
  X(linkat) X(symlink) X(symlinkat) X(readlink) X(readlinkat) \
  X(__readlink_chk) X(__readlinkat_chk) X(realpath) X(__realpath_chk) X(canonicalize_file_name) \
  X(chdir) X(chmod) X(fchmodat) \
  X(chown) X(lchown) X(fchownat) X(truncate) X(truncate64) X(utimensat) X(utimes) X(utime) \
  X(opendir) X(fdopendir) X(readdir) X(readdir64) X(mknod) X(mkfifo) X(mount) X(umount) X(umount2) X(statfs) X(statfs64) X(getxattr) X(lgetxattr) \
  X(fgetxattr) X(setxattr) X(lsetxattr) X(fsetxattr) X(removexattr) X(lremovexattr) \
  X(fremovexattr) X(listxattr) X(llistxattr) X(memfd_create) X(setsockopt) X(bind) X(connect)
#define SLUICE_HOOKS_IDENTITY(X) \
  X(setuid) X(setgid) X(seteuid) X(setegid) X(setreuid) X(setregid) X(setresuid) X(setresgid) \
  X(setfsuid) X(setfsgid) X(setgroups) X(initgroups) X(capset) X(unshare) X(setns) X(chroot) \
  X(pivot_root)
// Functions of LMDB, which hooks/lmdb.cc resolves, and functions of this library
// (hooks/samples.cc).
#define SLUICE_HOOKS_OTHERS(X) \
  X(mdb_get) X(mdb_cursor_get) X(mdb09_get) X(mdb09_cursor_get) X(mdb10_get) X(mdb10_cursor_get) \
  X(sluice_dataset) X(sluice_order) X(sluice_begin) X(sluice_end) X(sluice_next) X(sluice_fetch_begin) X(sluice_fetch_end) X(sluice_wanted) X(sluice_locate_files) \
  X(sluice_locate_extent) X(sluice_locate_extents) X(sluice_locate_keys) X(sluice_locate_parts) X(sluice_located) X(sluice_importance) \
  X(sluice_report_importance) X(sluice_report_labelled) X(sluice_select) X(sluice_serve) \
  X(sluice_selection) X(sluice_substitutes) X(sluice_tentative) X(sluice_rank_of) X(sluice_rank) X(sluice_seed) X(sluice_waited) X(sluice_reads_for_others) X(sluice_watch_opens) X(sluice_take_opens)
#define SLUICE_HOOKS(X) \
  SLUICE_HOOKS_OPEN(X) SLUICE_HOOKS_READ(X) SLUICE_HOOKS_MEMORY(X) SLUICE_HOOKS_SIGNAL(X) \
  SLUICE_HOOKS_PROCESS(X) SLUICE_HOOKS_WRITE(X) SLUICE_HOOKS_STDIO(X) SLUICE_HOOKS_PATH(X) \
  SLUICE_HOOKS_FD(X) SLUICE_HOOKS_IDENTITY(X)
// clang-format on

namespace sluice::preload {

#define SLUICE_HOOK_ID(name) k_##name,
enum class Hook : uint32_t { SLUICE_HOOKS(SLUICE_HOOK_ID) kCount };
#undef SLUICE_HOOK_ID

// Address of the next definition of the function after the hook; ends the process if libc lacks a
// function that is called. Async-signal-safe once resolved.
void* real_address(Hook hook);

// Resolves all functions; costs one load once done. Not from a signal handler.
void resolve_hooks();

}  // namespace sluice::preload

#define REAL(name)                     \
  reinterpret_cast<decltype(&::name)>( \
      ::sluice::preload::real_address(::sluice::preload::Hook::k_##name))
#define SLUICE_EXPORT extern "C" __attribute__((visibility("default")))
