// Settle
// SPDX-License-Identifier: Apache-2.0

#include "CMicroHTTPD.h"

#include <dlfcn.h>
#include <pthread.h>

#define FUNCTIONS(each)                                                                             \
  each(start_daemon) each(stop_daemon) each(get_daemon_info) each(run) each(get_timeout)            \
  each(add_connection) each(get_connection_info) each(get_connection_values)                        \
  each(suspend_connection) each(resume_connection) each(create_response_from_buffer)                \
  each(create_response_from_callback) each(add_response_header) each(queue_response)                \
  each(destroy_response)

#define MEMBER(name) __typeof__(&MHD_##name) name;
static struct {
  FUNCTIONS(MEMBER)
} library;

static const char *failure;

static void load(void) {
  void *handle = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);
#define FIND(name)                                                                                  \
  if (!handle || !(library.name = (__typeof__(library.name))dlsym(handle, "MHD_" #name))) goto failed;
  FUNCTIONS(FIND)
  return;
failed:
  failure = dlerror();
  if (!failure) failure = "libmicrohttpd.so.12 lacks a function";
}

const char *settle_http_load(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load);
  return failure;
}

struct MHD_Daemon *settle_http_start(MHD_AccessHandlerCallback handler,
                                     settle_http_line_callback line,
                                     MHD_RequestCompletedCallback completed,
                                     MHD_NotifyConnectionCallback changed, void *context,
                                     unsigned int connections, size_t memory,
                                     unsigned int idle_seconds) {
  return library.start_daemon(
      MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, handler,
      context, MHD_OPTION_URI_LOG_CALLBACK, line, context, MHD_OPTION_NOTIFY_COMPLETED, completed,
      context, MHD_OPTION_NOTIFY_CONNECTION, changed, context, MHD_OPTION_CONNECTION_LIMIT,
      connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT, memory, MHD_OPTION_CONNECTION_TIMEOUT,
      idle_seconds, MHD_OPTION_END);
}

void settle_http_stop(struct MHD_Daemon *daemon) { library.stop_daemon(daemon); }

int settle_http_epoll(struct MHD_Daemon *daemon) {
  const union MHD_DaemonInfo *info = library.get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
  return info ? info->epoll_fd : -1;
}

enum MHD_Result settle_http_run(struct MHD_Daemon *daemon) { return library.run(daemon); }

enum MHD_Result settle_http_timeout(struct MHD_Daemon *daemon, unsigned long long *milliseconds) {
  return library.get_timeout(daemon, milliseconds);
}

enum MHD_Result settle_http_add(struct MHD_Daemon *daemon, int descriptor,
                                const struct sockaddr *address, socklen_t size) {
  return library.add_connection(daemon, descriptor, address, size);
}

void *settle_http_socket_context(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info =
      library.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return info ? info->socket_context : NULL;
}

size_t settle_http_header_size(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info =
      library.get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
  return info ? info->header_size : 0;
}

int settle_http_headers(struct MHD_Connection *connection, MHD_KeyValueIterator each,
                        void *context) {
  return library.get_connection_values(connection, MHD_HEADER_KIND, each, context);
}

void settle_http_suspend(struct MHD_Connection *connection) {
  library.suspend_connection(connection);
}

void settle_http_resume(struct MHD_Connection *connection) {
  library.resume_connection(connection);
}

struct MHD_Response *settle_http_response(const void *bytes, size_t count) {
  return library.create_response_from_buffer(count, (void *)bytes, MHD_RESPMEM_MUST_COPY);
}

struct MHD_Response *settle_http_stream(size_t block, MHD_ContentReaderCallback reader,
                                        void *context, MHD_ContentReaderFreeCallback release) {
  return library.create_response_from_callback(MHD_SIZE_UNKNOWN, block, reader, context, release);
}

enum MHD_Result settle_http_response_header(struct MHD_Response *response, const char *name,
                                            const char *value) {
  return library.add_response_header(response, name, value);
}

enum MHD_Result settle_http_queue(struct MHD_Connection *connection, unsigned int status,
                                  struct MHD_Response *response) {
  return library.queue_response(connection, status, response);
}

void settle_http_destroy(struct MHD_Response *response) { library.destroy_response(response); }
