// Settle
// SPDX-License-Identifier: Apache-2.0

// The floor that the Swift queue is compared with: the least a C program needs to hold back the
// last value of each key until the key was quiet for one fixed delay. One intrusive list, no
// max_wait, no leading, no cancel, no running keys, no memory given back.

#ifndef SETTLE_BENCHMARKS_QUEUE_H
#define SETTLE_BENCHMARKS_QUEUE_H

#include <stddef.h>
#include <stdint.h>

struct slot {
  uint64_t due;
  int64_t value;
  int32_t next;
  int32_t previous;
  uint8_t pending;
};

struct queue {
  struct slot *slots;
  int32_t head, tail;
  uint64_t delay;

  // Names to slots: open addressing, half full at most. A cell holds the upper half of the hash
  // above the slot's number plus one.
  uint64_t *cells;
  uint64_t mask;
  uint32_t *offsets;
  uint32_t *lengths;
  uint8_t *arena;
  size_t arena_count, arena_capacity;
  int32_t count, capacity;
  uint64_t seed[2];
};

void queue_init(struct queue *queue, int32_t capacity, size_t name_bytes, uint64_t delay);
void queue_free(struct queue *queue);

// Adds a name that the table does not hold.
int32_t queue_add(struct queue *queue, const uint8_t *name, size_t length, uint64_t hash);

#define TAG UINT64_C(0xFFFFFFFF00000000)

static inline uint64_t fold(uint64_t left, uint64_t right) {
  unsigned __int128 product = (unsigned __int128)left * right;
  return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

static inline uint64_t word_at(const uint8_t *bytes) {
  uint64_t word;
  __builtin_memcpy(&word, bytes, sizeof word);
  return word;
}

static inline uint32_t half_word_at(const uint8_t *bytes) {
  uint32_t word;
  __builtin_memcpy(&word, bytes, sizeof word);
  return word;
}

// Sixteen bytes at a time; the last sixteen may overlap those before. The same as in Swift.
static inline uint64_t hash_of(const uint8_t *name, size_t length, const uint64_t seed[2]) {
  uint64_t state = seed[0] ^ length;
  if (length > 16) {
    const uint8_t *end = name + length;
    state = fold(word_at(name) ^ state, word_at(name + 8) ^ seed[1]);
    for (name += 16; end - name > 16; name += 16)
      state = fold(word_at(name) ^ state, word_at(name + 8) ^ seed[1]);
    return fold(word_at(end - 16) ^ state, word_at(end - 8) ^ seed[1]);
  }
  uint64_t first = 0, last = 0;
  if (length >= 8) {
    first = word_at(name);
    last = word_at(name + length - 8);
  } else if (length >= 4) {
    first = half_word_at(name);
    last = half_word_at(name + length - 4);
  } else if (length > 0) {
    first = name[0];
    last = (uint64_t)name[length >> 1] << 8 | name[length - 1];
  }
  return fold(first ^ state, last ^ seed[1]);
}

// The slot of a name, which is added if it is new.
static inline int32_t queue_slot(struct queue *queue, const uint8_t *name, size_t length) {
  uint64_t hash = hash_of(name, length, queue->seed);
  for (uint64_t cell = hash & queue->mask;; cell = (cell + 1) & queue->mask) {
    uint64_t entry = queue->cells[cell];
    if (entry == 0) return queue_add(queue, name, length, hash);
    if ((entry & TAG) != (hash & TAG)) continue;
    int32_t index = (int32_t)(uint32_t)entry - 1;
    if (queue->lengths[index] == length &&
        __builtin_memcmp(queue->arena + queue->offsets[index], name, length) == 0)
      return index;
  }
}

// Makes `value` the pending value of a slot, due after the delay.
static inline void queue_enqueue(struct queue *queue, int32_t index, int64_t value, uint64_t now) {
  struct slot *slot = &queue->slots[index];
  slot->value = value;
  slot->due = now + queue->delay;
  if (slot->pending) {
    if (queue->tail == index) return;
    if (slot->previous >= 0) queue->slots[slot->previous].next = slot->next;
    else queue->head = slot->next;
    queue->slots[slot->next].previous = slot->previous;
  }
  slot->pending = 1;
  slot->previous = queue->tail;
  slot->next = -1;
  if (queue->tail >= 0) queue->slots[queue->tail].next = index;
  else queue->head = index;
  queue->tail = index;
}

// Takes the next slot that is due; -1 for none.
static inline int32_t queue_next(struct queue *queue, uint64_t now, int64_t *value) {
  int32_t index = queue->head;
  if (index < 0 || queue->slots[index].due > now) return -1;
  struct slot *slot = &queue->slots[index];
  queue->head = slot->next;
  if (slot->next >= 0) queue->slots[slot->next].previous = -1;
  else queue->tail = -1;
  slot->pending = 0;
  *value = slot->value;
  return index;
}

#endif
