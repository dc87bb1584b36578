// Settle
// SPDX-License-Identifier: Apache-2.0

// reference WORKLOAD KEYS ROUNDS: runs one workload over the C queue and prints what it took.
// The Swift program beside it has the same workloads under the same names.

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "queue.h"

enum { changes_per_burst = 10, changes_per_wake = 64 };
static const uint64_t delay = 300 * 1000 * 1000;

struct names {
  int32_t count;
  uint8_t *bytes;
  uint32_t *starts; // count + 1 of them
  int32_t *order;   // a fixed shuffle
};

static struct names make_names(int32_t count) {
  struct names names = {.count = count};
  names.bytes = malloc((size_t)count * 48 + 1);
  names.starts = malloc(sizeof(uint32_t) * ((size_t)count + 1));
  names.order = malloc(sizeof(int32_t) * (size_t)count);
  uint32_t end = 0;
  for (int32_t i = 0; i < count; i++) {
    names.starts[i] = end;
    names.order[i] = i;
    end += (uint32_t)sprintf((char *)names.bytes + end, "home/room%d/device%d/level", i % 100, i);
  }
  names.starts[count] = end;
  uint64_t state = 42;
  for (int32_t i = count - 1; i > 0; i--) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    int32_t j = (int32_t)((state >> 33) % (uint64_t)(i + 1)), swapped = names.order[i];
    names.order[i] = names.order[j];
    names.order[j] = swapped;
  }
  return names;
}

static uint64_t cpu_nanoseconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static long resident_bytes(void) {
  char text[128] = {0};
  int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0 || read(file, text, sizeof text - 1) <= 0) exit(1);
  close(file);
  long total = 0, resident = 0;
  sscanf(text, "%ld %ld", &total, &resident);
  return resident * sysconf(_SC_PAGESIZE);
}

static uint64_t runs, checksum;

static void run(int32_t key, int64_t value) {
  runs++;
  checksum += (uint64_t)value ^ (uint64_t)key;
}

// Enqueues once per key, in shuffled order; time moves on by a microsecond per wake.
static void round_of_changes(struct queue *queue, const struct names *names, int64_t round,
                             uint64_t *now) {
  for (int32_t i = 0; i < names->count; i++) {
    int32_t key = names->order[i];
    uint32_t start = names->starts[key];
    int32_t slot = queue_slot(queue, names->bytes + start, names->starts[key + 1] - start);
    queue_enqueue(queue, slot, round << 32 | key, *now);
    if (i % changes_per_wake == 0) *now += 1000;
  }
}

static void run_due(struct queue *queue, uint64_t now) {
  int64_t value;
  for (int32_t slot; (slot = queue_next(queue, now, &value)) >= 0;) run(slot, value);
}

int main(int count, char **arguments) {
  if (count != 4) return fprintf(stderr, "usage: reference WORKLOAD KEYS ROUNDS\n"), 64;
  const char *workload = arguments[1];
  int32_t keys = atoi(arguments[2]);
  long rounds = atol(arguments[3]);
  struct names names = make_names(keys);
  struct queue queue;
  uint64_t now = 1;

  long resident = resident_bytes();
  resident = resident_bytes(); // The first look brought the code in.
  queue_init(&queue, keys, names.starts[keys], delay);
  // The table numbers the names 0, 1, 2, … in both programs.
  for (int32_t key = 0; key < keys; key++)
    queue_slot(&queue, names.bytes + names.starts[key], names.starts[key + 1] - names.starts[key]);
  round_of_changes(&queue, &names, 0, &now);

  uint64_t start = cpu_nanoseconds();
  if (strcmp(workload, "enqueue") == 0) {
    for (long round = 1; round <= rounds; round++) round_of_changes(&queue, &names, round, &now);
  } else if (strcmp(workload, "burst") == 0) {
    for (long burst = 0; burst < rounds; burst++) {
      for (int round = 0; round < changes_per_burst; round++)
        round_of_changes(&queue, &names, round, &now);
      now += delay;
      run_due(&queue, now);
    }
  } else if (strcmp(workload, "memory") == 0) {
    printf("{\"bytes\": %ld}\n", resident_bytes() - resident);
    return 0;
  } else {
    return fprintf(stderr, "reference: unknown workload %s\n", workload), 64;
  }
  uint64_t spent = cpu_nanoseconds() - start;
  now += delay;
  run_due(&queue, now);
  printf("{\"cpu_ns\": %llu, \"runs\": %llu, \"checksum\": %llu}\n", (unsigned long long)spent,
         (unsigned long long)runs, (unsigned long long)checksum);
  queue_free(&queue);
}
