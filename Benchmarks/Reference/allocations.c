// Settle
// SPDX-License-Identifier: Apache-2.0

// For LD_PRELOAD: counts the allocations of a process and prints "N allocations" at its end.

#define _GNU_SOURCE
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static atomic_ulong allocations;

static void note(void) { atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed); }

void *malloc(size_t size) { return note(), __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return note(), __libc_calloc(count, size); }
void *realloc(void *memory, size_t size) { return note(), __libc_realloc(memory, size); }
void *memalign(size_t alignment, size_t size) { return note(), __libc_memalign(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **memory, size_t alignment, size_t size) {
  *memory = memalign(alignment, size);
  return *memory ? 0 : 12;
}

__attribute__((destructor)) static void tell(void) {
  fprintf(stderr, "%lu allocations\n", atomic_load(&allocations));
}
