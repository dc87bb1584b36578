// Settle
// SPDX-License-Identifier: Apache-2.0

// What the Swift runtime does before `main` in a static program, and `settle` does not need.
//
// `settle` is started for every tap. The runtime finds the arguments by reading /proc/self/maps, and
// looks in eight folders for a program that prints backtraces, which a static program does not have.
// These definitions are taken instead of the runtime's own, and save a tenth of a start. They are
// weak: should a newer runtime not ask for them, or bring them along with something else, its own are
// used and nothing but the time is lost.
#if defined(SETTLE_STATIC)

#include <stddef.h>

static int argumentCount;
static char **arguments;

// The C library hands these to whatever runs before `main`.
__attribute__((constructor)) static void takeArguments(int count, char **values) {
  argumentCount = count;
  arguments = values;
}

__attribute__((weak)) char **_swift_stdlib_getUnsafeArgvArgc(int *count) {
  *count = argumentCount;
  return arguments;
}

__attribute__((weak)) void _swift_stdlib_overrideUnsafeArgvArgc(char **values, int count) {
  arguments = values;
  argumentCount = count;
}

__attribute__((weak)) char *swift_copyAuxiliaryExecutablePath(const char *folder, const char *name) {
  (void)folder;
  (void)name;
  return NULL;
}

__attribute__((weak)) const char *swift_getRootPath(void) { return ""; }

__attribute__((weak)) const char *swift_getRuntimeLibraryPath(void) { return ""; }

#endif
