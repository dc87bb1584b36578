// Settle
// SPDX-License-Identifier: Apache-2.0

#include "faulty_sync.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

// What fails in one folder. Tests run at once, each in a folder of its own.
typedef struct Fault {
  struct Fault *next;
  char *folder;
  atomic_int sync_code, write_code;
} Fault;

typedef struct {
  sqlite3_file base;
  sqlite3_file *real;
  Fault *fault;
} File;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static Fault *faults;
static sqlite3_vfs faulty;
static sqlite3_vfs *standard;

#define REAL(file) (((File *)(file))->real)

// The faults of the folder that a file is in; it is never freed.
static Fault *fault_of(const char *path) {
  const char *end = path ? strrchr(path, '/') : 0;
  size_t length = end ? (size_t)(end - path) : 0;
  pthread_mutex_lock(&mutex);
  Fault *fault = faults;
  while (fault && (strlen(fault->folder) != length || strncmp(fault->folder, path, length)))
    fault = fault->next;
  if (!fault && (fault = calloc(1, sizeof *fault))) {
    fault->folder = strndup(path ? path : "", length);
    fault->next = faults;
    faults = fault;
  }
  pthread_mutex_unlock(&mutex);
  return fault;
}

static int f_close(sqlite3_file *f) {
  return REAL(f)->pMethods ? REAL(f)->pMethods->xClose(REAL(f)) : SQLITE_OK;
}
static int f_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at) {
  return REAL(f)->pMethods->xRead(REAL(f), p, n, at);
}
static int f_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at) {
  int code = atomic_load(&((File *)f)->fault->write_code);
  return code ? code : REAL(f)->pMethods->xWrite(REAL(f), p, n, at);
}
static int f_truncate(sqlite3_file *f, sqlite3_int64 size) {
  return REAL(f)->pMethods->xTruncate(REAL(f), size);
}
static int f_sync(sqlite3_file *f, int flags) {
  int code = atomic_load(&((File *)f)->fault->sync_code);
  return code ? code : REAL(f)->pMethods->xSync(REAL(f), flags);
}
static int f_size(sqlite3_file *f, sqlite3_int64 *size) {
  return REAL(f)->pMethods->xFileSize(REAL(f), size);
}
static int f_lock(sqlite3_file *f, int level) { return REAL(f)->pMethods->xLock(REAL(f), level); }
static int f_unlock(sqlite3_file *f, int level) {
  return REAL(f)->pMethods->xUnlock(REAL(f), level);
}
static int f_reserved(sqlite3_file *f, int *out) {
  return REAL(f)->pMethods->xCheckReservedLock(REAL(f), out);
}
static int f_control(sqlite3_file *f, int op, void *argument) {
  return REAL(f)->pMethods->xFileControl(REAL(f), op, argument);
}
static int f_sector(sqlite3_file *f) { return REAL(f)->pMethods->xSectorSize(REAL(f)); }
static int f_traits(sqlite3_file *f) { return REAL(f)->pMethods->xDeviceCharacteristics(REAL(f)); }

// Version 1 has no shared memory: the journal is opened exclusively and needs none.
static const sqlite3_io_methods methods = {
    .iVersion = 1,
    .xClose = f_close,
    .xRead = f_read,
    .xWrite = f_write,
    .xTruncate = f_truncate,
    .xSync = f_sync,
    .xFileSize = f_size,
    .xLock = f_lock,
    .xUnlock = f_unlock,
    .xCheckReservedLock = f_reserved,
    .xFileControl = f_control,
    .xSectorSize = f_sector,
    .xDeviceCharacteristics = f_traits,
};

static int f_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out) {
  File *shim = (File *)file;
  (void)vfs;
  shim->real = (sqlite3_file *)&shim[1];
  shim->fault = fault_of(name);
  if (!shim->fault) return SQLITE_NOMEM;
  int code = standard->xOpen(standard, name, shim->real, flags, out);
  shim->base.pMethods = shim->real->pMethods ? &methods : 0;
  return code;
}

int faulty_install(void) {
  if (sqlite3_vfs_find("faulty")) return SQLITE_OK;
  standard = sqlite3_vfs_find(0);
  if (!standard) return SQLITE_ERROR;
  faulty = *standard;
  faulty.pNext = 0;
  faulty.zName = "faulty";
  faulty.szOsFile = standard->szOsFile + (int)sizeof(File);
  faulty.xOpen = f_open;
  return sqlite3_vfs_register(&faulty, 0);
}

void faulty_fail(const char *path, int sync, int write) {
  Fault *fault = fault_of(path);
  if (!fault) abort();
  atomic_store(&fault->sync_code, sync);
  atomic_store(&fault->write_code, write);
}
