// Settle
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <stdbool.h>

/// A connection to servers of NATS, by libnats, which is loaded when it is first needed.
struct settle_nats;

/// What happens on threads of libnats.
struct settle_nats_handlers {
  void *_Nonnull owner;
  /// A connection was made, or made again.
  void (*_Nonnull connected)(void *_Nonnull owner);
  /// The connection was lost; libnats tries again. `reason` may be empty.
  void (*_Nonnull disconnected)(void *_Nonnull owner, const char *_Nonnull reason);
  /// A message; `status` and `last_consumer` are headers, and all texts but the subject may be null.
  void (*_Nonnull message)(
      void *_Nonnull owner, const char *_Nonnull subject, const char *_Nullable reply,
      const char *_Nullable status, const char *_Nullable last_consumer,
      const char *_Nullable data, int size);
};

/// Who connects, and how; all texts but the servers may be null.
struct settle_nats_settings {
  const char *_Nullable *_Nonnull servers;
  int server_count;
  const char *_Nullable name;
  const char *_Nullable user;
  const char *_Nullable password;
  const char *_Nullable credentials;
  const char *_Nullable ca;
  const char *_Nullable certificate;
  const char *_Nullable key;
  bool is_encrypted;
};

/// Loads the library from a file, or where that is null the installed one; `false` with the reason in
/// `problem`, cut to `size` bytes.
bool settle_nats_load(const char *_Nullable library, char *_Nonnull problem, int size);

/// Connects, which may take as long as names and servers take to answer; null with the reason in
/// `problem`. Later the connection is made again by itself, without end.
struct settle_nats *_Nullable settle_nats_connect(
    const struct settle_nats_settings *_Nonnull settings,
    const struct settle_nats_handlers *_Nonnull handlers, char *_Nonnull problem, int size);

/// Subscribes to a subject; `false` if that fails.
bool settle_nats_subscribe(struct settle_nats *_Nonnull connection, const char *_Nonnull subject);

/// Publishes a message; `false` if that fails. A stream stores it only after the sequence number
/// `expected` of its subject, and once for each `id`, where they are given.
bool settle_nats_publish(
    struct settle_nats *_Nonnull connection, const char *_Nonnull subject,
    const char *_Nullable reply, const char *_Nullable expected, const char *_Nullable id,
    const void *_Nullable data, int size);

/// The largest payload that the server takes, in bytes.
long long settle_nats_largest(struct settle_nats *_Nonnull connection);

/// Writes the address of the server; empty without a connection.
void settle_nats_server(struct settle_nats *_Nonnull connection, char *_Nonnull url, int size);

/// Closes and frees the connection; no handler is called afterwards.
void settle_nats_close(struct settle_nats *_Nonnull connection);
