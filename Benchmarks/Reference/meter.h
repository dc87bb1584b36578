// Settle
// SPDX-License-Identifier: Apache-2.0

// What the reference programs have in common: clocks, percentiles, giving up.

#ifndef SETTLE_BENCHMARKS_METER_H
#define SETTLE_BENCHMARKS_METER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static inline uint64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }
static inline uint64_t cpu_ns(void) { return clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

_Noreturn static inline void give_up(const char *call) {
  perror(call);
  exit(1);
}

static inline int compare_numbers(const void *left, const void *right) {
  uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
  return a < b ? -1 : a > b;
}

// Sorts `values` and prints their count, median, 99th percentile and maximum, as members of an object.
static inline void print_percentiles(uint64_t *values, size_t count) {
  if (count == 0) exit(1);
  qsort(values, count, sizeof *values, compare_numbers);
  printf("\"count\": %zu, \"p50\": %llu, \"p99\": %llu, \"max\": %llu", count,
         (unsigned long long)values[count / 2], (unsigned long long)values[count * 99 / 100],
         (unsigned long long)values[count - 1]);
}

#endif
