// Settle
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <microhttpd.h>

// libmicrohttpd, loaded when the first server is made: it brings nine libraries with it, GnuTLS
// among them, whose pages every gateway would have to keep, also those without HTTP.

// Loads the library, once; NULL, or why it cannot be used. Nothing else here may be called before.
const char *settle_http_load(void);

typedef void *(*settle_http_line_callback)(void *context, const char *target,
                                           struct MHD_Connection *connection);

// No thread and no listening socket of the library's own: connections are handed over one by one,
// and the caller watches the epoll descriptor.
struct MHD_Daemon *settle_http_start(MHD_AccessHandlerCallback handler,
                                     settle_http_line_callback line,
                                     MHD_RequestCompletedCallback completed,
                                     MHD_NotifyConnectionCallback changed, void *context,
                                     unsigned int connections, size_t memory,
                                     unsigned int idle_seconds);
void settle_http_stop(struct MHD_Daemon *daemon);
int settle_http_epoll(struct MHD_Daemon *daemon);
enum MHD_Result settle_http_run(struct MHD_Daemon *daemon);
enum MHD_Result settle_http_timeout(struct MHD_Daemon *daemon, unsigned long long *milliseconds);

enum MHD_Result settle_http_add(struct MHD_Daemon *daemon, int descriptor,
                                const struct sockaddr *address, socklen_t size);
void *settle_http_socket_context(struct MHD_Connection *connection);
size_t settle_http_header_size(struct MHD_Connection *connection);
int settle_http_headers(struct MHD_Connection *connection, MHD_KeyValueIterator each, void *context);
void settle_http_suspend(struct MHD_Connection *connection);
void settle_http_resume(struct MHD_Connection *connection);

// The bytes are copied.
struct MHD_Response *settle_http_response(const void *bytes, size_t count);
struct MHD_Response *settle_http_stream(size_t block, MHD_ContentReaderCallback reader,
                                        void *context, MHD_ContentReaderFreeCallback release);
enum MHD_Result settle_http_response_header(struct MHD_Response *response, const char *name,
                                            const char *value);
enum MHD_Result settle_http_queue(struct MHD_Connection *connection, unsigned int status,
                                  struct MHD_Response *response);
void settle_http_destroy(struct MHD_Response *response);

// Cast macros are not imported into Swift.
static const ssize_t settle_http_end_of_stream = MHD_CONTENT_READER_END_OF_STREAM;
static const ssize_t settle_http_end_with_error = MHD_CONTENT_READER_END_WITH_ERROR;
