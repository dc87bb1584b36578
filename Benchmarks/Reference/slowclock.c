// Settle
// SPDX-License-Identifier: Apache-2.0

// For LD_PRELOAD: the monotonic clock runs a thousand times slower from the first look on, and timer
// descriptors with it. Under valgrind a second's work takes a minute, in which timers would fire that
// have nothing to do with the work; with this they stay away, and counts of instructions repeat.

#define _GNU_SOURCE
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { slower = 1000 };
static const uint64_t second = 1000000000;
static uint64_t origin;

static uint64_t real_now(void) {
  struct timespec time;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * second + (uint64_t)time.tv_nsec;
}

__attribute__((constructor)) static void begin(void) { origin = real_now(); }

int clock_gettime(clockid_t clock, struct timespec *time) {
  if (clock != CLOCK_MONOTONIC) return (int)syscall(SYS_clock_gettime, clock, time);
  uint64_t now = origin + (real_now() - origin) / slower;
  time->tv_sec = (time_t)(now / second);
  time->tv_nsec = (long)(now % second);
  return 0;
}

int timerfd_settime(int file, int flags, const struct itimerspec *setting,
                    struct itimerspec *previous) {
  struct itimerspec real = *setting;
  uint64_t due = (uint64_t)setting->it_value.tv_sec * second + (uint64_t)setting->it_value.tv_nsec;
  if (flags & TFD_TIMER_ABSTIME && due > origin) {
    due = origin + (due - origin) * slower;
    real.it_value.tv_sec = (time_t)(due / second);
    real.it_value.tv_nsec = (long)(due % second);
  }
  return (int)syscall(SYS_timerfd_settime, file, flags, &real, previous);
}
