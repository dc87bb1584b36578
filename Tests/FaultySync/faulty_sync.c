// Settle
// SPDX-License-Identifier: Apache-2.0

#include "faulty_sync.h"

#include <sqlite3.h>
#include <stdatomic.h>

typedef struct {
  sqlite3_file base;
  sqlite3_file *real;
} File;

static atomic_int sync_code, write_code, failures;
static sqlite3_vfs faulty;
static sqlite3_vfs *standard;

#define REAL(file) (((File *)(file))->real)

static int f_close(sqlite3_file *f) {
  return REAL(f)->pMethods ? REAL(f)->pMethods->xClose(REAL(f)) : SQLITE_OK;
}
static int f_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at) {
  return REAL(f)->pMethods->xRead(REAL(f), p, n, at);
}
static int f_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at) {
  int code = atomic_load(&write_code);
  return code ? code : REAL(f)->pMethods->xWrite(REAL(f), p, n, at);
}
static int f_truncate(sqlite3_file *f, sqlite3_int64 size) {
  return REAL(f)->pMethods->xTruncate(REAL(f), size);
}
static int f_sync(sqlite3_file *f, int flags) {
  int code = atomic_load(&sync_code);
  if (!code) return REAL(f)->pMethods->xSync(REAL(f), flags);
  atomic_fetch_add(&failures, 1);
  return code;
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

void faulty_fail(int sync, int write) {
  atomic_store(&sync_code, sync);
  atomic_store(&write_code, write);
}

int faulty_failures(void) { return atomic_load(&failures); }
