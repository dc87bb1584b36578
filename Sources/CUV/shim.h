// Settle
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <uv.h>

// Variadic functions are not imported into Swift, and pidfd_open has a wrapper only from glibc
// 2.36 on.

// Declared by spawn.h, but not visible through the Glibc module.
extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *, int);

static inline int settle_spawn_close_from(posix_spawn_file_actions_t *actions, int first) {
  return posix_spawn_file_actions_addclosefrom_np(actions, first);
}

// accept4 is not declared without _GNU_SOURCE.
extern int accept4(int, struct sockaddr *, socklen_t *, int);

// A connection that neither blocks nor is inherited.
static inline int settle_accept(int listener) {
  return accept4(listener, 0, 0, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

// Counts the time that the loop sleeps, for uv_metrics_idle_time.
static inline int settle_uv_measure_idle(uv_loop_t *loop) {
  return uv_loop_configure(loop, UV_METRICS_IDLE_TIME);
}

static inline int settle_pidfd_open(pid_t pid) {
  return (int)syscall(SYS_pidfd_open, pid, 0);
}

static inline int settle_pidfd_send_signal(int descriptor, int number) {
  return (int)syscall(SYS_pidfd_send_signal, descriptor, number, (void *)0, 0);
}

// PR_SET_DUMPABLE also covers a core pattern that names a program, which RLIMIT_CORE does not.
static inline int settle_disable_core_dumps(void) {
  return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

static inline int settle_is_dumpable(void) {
  return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
}
