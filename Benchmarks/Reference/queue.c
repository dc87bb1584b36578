// Settle
// SPDX-License-Identifier: Apache-2.0

#include "queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static void *grown(void *memory, size_t bytes) {
  void *moved = realloc(memory, bytes);
  if (moved == NULL) {
    perror("realloc");
    exit(1);
  }
  return moved;
}

static void reserve(struct queue *queue, int32_t capacity) {
  queue->slots = grown(queue->slots, sizeof(struct slot) * (size_t)capacity);
  queue->offsets = grown(queue->offsets, sizeof(uint32_t) * (size_t)capacity);
  queue->lengths = grown(queue->lengths, sizeof(uint32_t) * (size_t)capacity);
  queue->capacity = capacity;
}

static void rehash(struct queue *queue, uint64_t size) {
  free(queue->cells);
  queue->cells = calloc(size, sizeof(uint64_t));
  if (queue->cells == NULL) {
    perror("calloc");
    exit(1);
  }
  queue->mask = size - 1;
  for (int32_t index = 0; index < queue->count; index++) {
    uint64_t hash =
        hash_of(queue->arena + queue->offsets[index], queue->lengths[index], queue->seed);
    uint64_t cell = hash & queue->mask;
    while (queue->cells[cell] != 0) cell = (cell + 1) & queue->mask;
    queue->cells[cell] = (hash & TAG) | (uint64_t)(index + 1);
  }
}

void queue_init(struct queue *queue, int32_t capacity, size_t name_bytes, uint64_t delay) {
  uint64_t size = 16;
  while (size < (uint64_t)capacity * 2) size *= 2;
  memset(queue, 0, sizeof *queue);
  queue->head = queue->tail = -1;
  queue->delay = delay;
  if (getrandom(queue->seed, sizeof queue->seed, 0) != sizeof queue->seed) {
    perror("getrandom");
    exit(1);
  }
  reserve(queue, capacity);
  rehash(queue, size);
  queue->arena = grown(NULL, name_bytes);
  queue->arena_capacity = name_bytes;
}

void queue_free(struct queue *queue) {
  free(queue->slots);
  free(queue->cells);
  free(queue->offsets);
  free(queue->lengths);
  free(queue->arena);
}

int32_t queue_add(struct queue *queue, const uint8_t *name, size_t length, uint64_t hash) {
  if (queue->count == queue->capacity) reserve(queue, queue->capacity * 2);
  if ((uint64_t)(queue->count + 1) * 2 > queue->mask + 1) rehash(queue, (queue->mask + 1) * 2);
  if (queue->arena_count + length > queue->arena_capacity) {
    queue->arena_capacity = (queue->arena_count + length) * 2;
    queue->arena = grown(queue->arena, queue->arena_capacity);
  }
  int32_t index = queue->count++;
  memcpy(queue->arena + queue->arena_count, name, length);
  queue->offsets[index] = (uint32_t)queue->arena_count;
  queue->lengths[index] = (uint32_t)length;
  queue->arena_count += length;
  queue->slots[index] = (struct slot){.next = -1, .previous = -1};
  uint64_t cell = hash & queue->mask;
  while (queue->cells[cell] != 0) cell = (cell + 1) & queue->mask;
  queue->cells[cell] = (hash & TAG) | (uint64_t)(index + 1);
  return index;
}
