// Settle
// SPDX-License-Identifier: Apache-2.0

// lateness CHANGES MILLISECONDS: how late values leave a bare loop, which sleeps on one timer
// descriptor until the next millisecond's CHANGES or the next value's due moment, whichever comes
// first. Each key changes ten times in its millisecond (or once, if there is but one change) and
// leaves 20.5 ms later. Nanoseconds. The Swift program has the same workload.

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "meter.h"
#include "queue.h"

enum { blocks = 40 };
static const uint64_t delay = 20500000, tick = 1000000;

static void arm(int timer, uint64_t due) {
  struct itimerspec setting = {
      .it_value = {.tv_sec = (time_t)(due / 1000000000), .tv_nsec = (long)(due % 1000000000)}};
  timerfd_settime(timer, TFD_TIMER_ABSTIME, &setting, NULL);
}

int main(int count, char **arguments) {
  if (count != 3) return fprintf(stderr, "usage: lateness CHANGES MILLISECONDS\n"), 64;
  int changes = atoi(arguments[1]), length = atoi(arguments[2]);
  int repeats = changes < 10 ? 1 : 10, width = changes / repeats;
  struct queue queue;
  queue_init(&queue, width * blocks, (size_t)(width * blocks) * 16, delay);
  for (int key = 0; key < width * blocks; key++) {
    char name[16];
    int size = snprintf(name, sizeof name, "key%d", key);
    queue_slot(&queue, (const uint8_t *)name, (size_t)size);
  }
  uint64_t *values = malloc(sizeof(uint64_t) * (size_t)(width * length));
  size_t runs = 0, early = 0;
  int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK), poller = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  epoll_ctl(poller, EPOLL_CTL_ADD, timer, &event);
  uint64_t next = now_ns() + tick;
  for (int done = 0; done < length || queue.head >= 0;) {
    uint64_t due = done < length ? next : UINT64_MAX;
    if (queue.head >= 0 && queue.slots[queue.head].due < due) due = queue.slots[queue.head].due;
    arm(timer, due);
    epoll_wait(poller, &event, 1, -1);
    uint64_t expirations;
    if (read(timer, &expirations, sizeof expirations) < 0) continue;
    uint64_t now = now_ns();
    int64_t value;
    for (int32_t slot; (slot = queue_next(&queue, now, &value)) >= 0;) {
      uint64_t left = now_ns(), planned = queue.slots[slot].due;
      if (left < planned) early++;
      else values[runs++] = left - planned;
    }
    if (done < length && next <= now) {
      for (int repeat = 0; repeat < repeats; repeat++)
        for (int key = 0; key < width; key++)
          queue_enqueue(&queue, done % blocks * width + key, repeat, now);
      done++;
      next += tick;
    }
  }
  printf("{\"early\": %zu, \"cpu_ns\": %llu, ", early, (unsigned long long)cpu_ns());
  print_percentiles(values, runs);
  printf("}\n");
}
