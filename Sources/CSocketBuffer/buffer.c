// Settle
// SPDX-License-Identifier: Apache-2.0

#include "CSocketBuffer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { capacity = settle_socket_buffer_capacity };

settle_socket_buffer *settle_socket_buffer_new(int descriptor) {
  settle_socket_buffer *buffer = calloc(1, sizeof *buffer + 2 * capacity);
  if (!buffer) return NULL;
  buffer->descriptor = descriptor;
  buffer->input = (unsigned char *)(buffer + 1);
  buffer->output = buffer->input + capacity;
  return buffer;
}

void settle_socket_buffer_free(settle_socket_buffer *buffer) { free(buffer); }

static ssize_t later(void) {
  errno = EAGAIN;
  return -1;
}

ssize_t settle_socket_buffer_read(settle_socket_buffer *buffer, void *bytes, size_t count) {
  if (buffer->input_start == buffer->input_end) {
    if (buffer->is_drained) return later();
    // What is larger than the buffer does not need it.
    bool is_direct = count >= capacity;
    size_t wanted = is_direct ? count : capacity;
    ssize_t came =
        syscall(SYS_read, buffer->descriptor, is_direct ? bytes : buffer->input, wanted);
    if (came < 0 && errno == EAGAIN) buffer->is_drained = true;
    if (came <= 0) return came;
    buffer->is_drained = (size_t)came < wanted;
    if (is_direct) return came;
    buffer->input_start = 0;
    buffer->input_end = (size_t)came;
  }
  size_t available = buffer->input_end - buffer->input_start;
  if (count > available) count = available;
  memcpy(bytes, buffer->input + buffer->input_start, count);
  buffer->input_start += count;
  return (ssize_t)count;
}

void settle_socket_buffer_send(settle_socket_buffer *buffer) {
  while (buffer->output_start < buffer->output_end && buffer->descriptor >= 0 && !buffer->failure) {
    size_t count = buffer->output_end - buffer->output_start;
    ssize_t taken =
        send(buffer->descriptor, buffer->output + buffer->output_start, count, MSG_NOSIGNAL);
    if (taken >= 0) {
      buffer->output_start += (size_t)taken;
      buffer->sent += (uint64_t)taken;
      buffer->is_blocked = (size_t)taken < count;
      if (buffer->is_blocked) return;
    } else if (errno == EAGAIN) {
      buffer->is_blocked = true;
      return;
    } else if (errno != EINTR) {
      buffer->failure = errno;
    }
  }
  if (buffer->output_start < buffer->output_end) return;
  buffer->output_start = buffer->output_end = 0;
  buffer->is_blocked = false;
}

// How many bytes more can be kept, all in one piece.
static size_t room(settle_socket_buffer *buffer) {
  size_t waiting = buffer->output_end - buffer->output_start;
  if (buffer->output_start > 0) {
    memmove(buffer->output, buffer->output + buffer->output_start, waiting);
    buffer->output_start = 0;
    buffer->output_end = waiting;
  }
  return capacity - waiting;
}

ssize_t settle_socket_buffer_write(settle_socket_buffer *buffer, const void *bytes, size_t count) {
  bool is_direct = buffer->writes_through || count > capacity;
  if (is_direct || count > capacity - buffer->output_end) settle_socket_buffer_send(buffer);
  if (buffer->failure) return later();
  if (is_direct) {
    if (buffer->output_start < buffer->output_end) return later();
    ssize_t taken = send(buffer->descriptor, bytes, count, MSG_NOSIGNAL);
    if (taken < 0) return taken;
    buffer->queued += (uint64_t)taken;
    buffer->sent += (uint64_t)taken;
    return taken;
  }
  if (count > capacity - buffer->output_end) {
    size_t free = room(buffer);
    if (free == 0) return later();
    if (count > free) count = free;
  }
  memcpy(buffer->output + buffer->output_end, bytes, count);
  buffer->output_end += count;
  buffer->queued += count;
  return (ssize_t)count;
}
