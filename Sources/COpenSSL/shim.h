// Settle
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
