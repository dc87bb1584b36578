// Settle
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <microhttpd.h>

// Variadic functions and cast macros are not imported into Swift.

typedef void *(*settle_http_line_callback)(void *context, const char *target,
                                           struct MHD_Connection *connection);

// A daemon without a thread or a listening socket: the caller hands over each connection and watches
// the epoll descriptor.
static inline struct MHD_Daemon *settle_http_start(MHD_AccessHandlerCallback handler,
                                                   settle_http_line_callback line,
                                                   MHD_RequestCompletedCallback completed,
                                                   MHD_NotifyConnectionCallback changed,
                                                   void *context, unsigned int connections,
                                                   size_t memory, unsigned int idle_seconds) {
  return MHD_start_daemon(
      MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, handler,
      context, MHD_OPTION_URI_LOG_CALLBACK, line, context, MHD_OPTION_NOTIFY_COMPLETED, completed,
      context, MHD_OPTION_NOTIFY_CONNECTION, changed, context, MHD_OPTION_CONNECTION_LIMIT,
      connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT, memory, MHD_OPTION_CONNECTION_TIMEOUT,
      idle_seconds, MHD_OPTION_END);
}

static inline int settle_http_epoll(struct MHD_Daemon *daemon) {
  const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
  return info ? info->epoll_fd : -1;
}

static inline void *settle_http_socket_context(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return info ? info->socket_context : NULL;
}

static inline int settle_http_descriptor(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info ? info->connect_fd : -1;
}

static inline size_t settle_http_header_size(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
  return info ? info->header_size : 0;
}

static const uint64_t settle_http_unknown_size = MHD_SIZE_UNKNOWN;
static const ssize_t settle_http_end_of_stream = MHD_CONTENT_READER_END_OF_STREAM;
static const ssize_t settle_http_end_with_error = MHD_CONTENT_READER_END_WITH_ERROR;
