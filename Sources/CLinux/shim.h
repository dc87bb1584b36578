// Settle
// SPDX-License-Identifier: Apache-2.0

#pragma once

// Not part of Swift's Glibc module.
#include <malloc.h>
#include <sys/signalfd.h>
#include <sys/timex.h>
