// Settle
// SPDX-License-Identifier: Apache-2.0

// The system calls that libraries of this program make through the dynamic linker, which takes the
// program's definitions before the C library's. The C library itself does not come by here.

#define _GNU_SOURCE
#include "CSocketBuffer.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Thread_local settle_socket_buffer *current;
static _Thread_local bool refuses_pairs;

settle_socket_buffer *settle_socket_buffer_enter(settle_socket_buffer *buffer) {
  settle_socket_buffer *previous = current;
  current = buffer;
  return previous;
}

void settle_refuse_socket_pairs(bool is_refused) { refuses_pairs = is_refused; }

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer) || \
    __has_feature(memory_sanitizer)
#define SETTLE_SANITIZED
#endif
#endif

#if defined(SETTLE_SANITIZED)

bool settle_socket_buffer_is_available(void) { return false; }

#else

bool settle_socket_buffer_is_available(void) {
  return dlsym(RTLD_DEFAULT, "read") == (void *)read &&
         dlsym(RTLD_DEFAULT, "write") == (void *)write;
}

ssize_t read(int descriptor, void *bytes, size_t count) {
  settle_socket_buffer *buffer = current;
  if (buffer && buffer->descriptor == descriptor)
    return settle_socket_buffer_read(buffer, bytes, count);
  return syscall(SYS_read, descriptor, bytes, count);
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
  settle_socket_buffer *buffer = current;
  if (buffer && buffer->descriptor == descriptor)
    return settle_socket_buffer_write(buffer, bytes, count);
  return syscall(SYS_write, descriptor, bytes, count);
}

int socketpair(int domain, int type, int protocol, int pair[2]) {
  if (refuses_pairs && domain == AF_UNIX && type == SOCK_STREAM && protocol == 0) {
    errno = EMFILE;
    return -1;
  }
  return (int)syscall(SYS_socketpair, domain, type, protocol, pair);
}

#endif
