// Settle
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// A buffer on each way between a library that reads and writes a socket by itself, a few bytes at a
// time, and the kernel.
//
// A program that links this defines `read` and `write` itself, and so they are what its libraries
// call. Both forward to the kernel, except inside settle_socket_buffer_enter: there, calls on the
// entered buffer's descriptor, by the thread that entered it, are served from the buffer. A buffer
// belongs to one thread at a time. Under a sanitizer, which has definitions of its own, and where a
// linker keeps ours to itself, nothing is served, and all of this is without effect.

typedef struct settle_socket_buffer {
  // -1 once it was let go of: then nothing is sent any more.
  int descriptor;
  // Why sending failed; 0 while it has not. What is written after that waits for ever.
  int failure;
  // The kernel had less than was asked for: it is not asked again before `begin_reading`.
  bool is_drained;
  // The kernel took less than there was: try again when the socket is writable.
  bool is_blocked;
  // Nothing is kept back any more: written is sent.
  bool writes_through;
  size_t input_start, input_end;
  size_t output_start, output_end;
  // Bytes written to the buffer, and bytes the kernel took, since it was made.
  uint64_t queued, sent;
  unsigned char *input, *output;
} settle_socket_buffer;

// Bytes on each way.
enum { settle_socket_buffer_capacity = 16 * 1024 };

// Whether libraries of this process are served at all.
bool settle_socket_buffer_is_available(void);

// NULL without memory.
settle_socket_buffer *settle_socket_buffer_new(int descriptor);

// What was not sent is gone.
void settle_socket_buffer_free(settle_socket_buffer *buffer);

// Serves this thread's calls from `buffer`, or from none; returns whose turn it was before, to be
// entered again afterwards.
settle_socket_buffer *settle_socket_buffer_enter(settle_socket_buffer *buffer);

// Sends what was written, as far as the kernel takes it.
void settle_socket_buffer_send(settle_socket_buffer *buffer);

// What `read` and `write` do inside settle_socket_buffer_enter.
ssize_t settle_socket_buffer_read(settle_socket_buffer *buffer, void *bytes, size_t count);
ssize_t settle_socket_buffer_write(settle_socket_buffer *buffer, const void *bytes, size_t count);

// Whether this thread's libraries get no pair of unix stream sockets from now on. libmosquitto makes
// one for threads of its own, tells them of each packet by a byte, and does well without.
void settle_refuse_socket_pairs(bool is_refused);
