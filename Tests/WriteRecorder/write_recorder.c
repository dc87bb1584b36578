// Settle
// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE

#include "write_recorder.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

// The program's symbols come before the C library's, for libsqlite3 too.
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static const char *folder;
static int log_file = -1;

__attribute__((constructor)) static void start(void) {
  const char *name = getenv("RECORD_LOG");
  folder = getenv("RECORD_FOLDER");
  if (!name || !folder) return;
  log_file = (int)syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int is_recorded(const char *path) {
  return log_file >= 0 && !strncmp(path, folder, strlen(folder));
}

static void append(char kind, const char *path, int64_t offset, const void *data, size_t count) {
  char head[13] = {kind};
  uint32_t numbers[3] = {(uint32_t)strlen(path), (uint32_t)offset, (uint32_t)count};
  memcpy(head + 1, numbers, sizeof numbers);
  struct iovec parts[3] = {{head, sizeof head}, {(void *)path, numbers[0]}, {(void *)data, count}};
  pthread_mutex_lock(&turn);
  if (writev(log_file, parts, 3) < 0) abort();
  pthread_mutex_unlock(&turn);
}

static void append_file(char kind, int file, int64_t offset, const void *data, size_t count) {
  if (log_file < 0) return;
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return;
  path[length] = 0;
  if (is_recorded(path)) append(kind, path, offset, data, count);
}

void recorder_note(const void *bytes, size_t count) {
  if (log_file >= 0) append('F', "", 0, bytes, count);
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
  ssize_t written = REAL(pwrite)(file, bytes, count, offset);
  if (written > 0) append_file('W', file, offset, bytes, (size_t)written);
  return written;
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset) {
  return pwrite(file, bytes, count, offset);
}

int ftruncate(int file, off_t size) {
  int code = REAL(ftruncate)(file, size);
  if (!code) append_file('T', file, size, "", 0);
  return code;
}

int ftruncate64(int file, off64_t size) { return ftruncate(file, size); }

int fsync(int file) {
  int code = REAL(fsync)(file);
  if (!code) append_file('S', file, 0, "", 0);
  return code;
}

int fdatasync(int file) {
  int code = REAL(fdatasync)(file);
  if (!code) append_file('S', file, 0, "", 0);
  return code;
}

int open(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  int mode = flags & O_CREAT ? va_arg(arguments, int) : 0;
  va_end(arguments);
  int is_new = flags & O_CREAT && is_recorded(path) && access(path, F_OK) != 0;
  int file = REAL(open)(path, flags, mode);
  if (file >= 0 && is_new) append('C', path, 0, "", 0);
  return file;
}

int open64(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  int mode = flags & O_CREAT ? va_arg(arguments, int) : 0;
  va_end(arguments);
  return open(path, flags, mode);
}

int rename(const char *path, const char *other) {
  int code = REAL(rename)(path, other);
  if (!code && is_recorded(path)) append('R', path, 0, other, strlen(other));
  return code;
}

int unlink(const char *path) {
  int code = REAL(unlink)(path);
  if (!code && is_recorded(path)) append('U', path, 0, "", 0);
  return code;
}
