// Settle
// SPDX-License-Identifier: Apache-2.0

#include "include/cnats.h"

#include <dlfcn.h>
#include <nats/nats.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

// The functions of libnats that are used.
#define FUNCTIONS(DO) \
  DO(natsOptions_Create) \
  DO(natsOptions_Destroy) \
  DO(natsOptions_SetServers) \
  DO(natsOptions_SetName) \
  DO(natsOptions_SetUserInfo) \
  DO(natsOptions_SetUserCredentialsFromFiles) \
  DO(natsOptions_SetSecure) \
  DO(natsOptions_LoadCATrustedCertificates) \
  DO(natsOptions_LoadCertificatesChain) \
  DO(natsOptions_SetMaxReconnect) \
  DO(natsOptions_SetReconnectWait) \
  DO(natsOptions_SetTimeout) \
  DO(natsOptions_SetPingInterval) \
  DO(natsOptions_SetMaxPingsOut) \
  DO(natsOptions_SetNoEcho) \
  DO(natsOptions_UseGlobalMessageDelivery) \
  DO(natsOptions_SetDisconnectedCB) \
  DO(natsOptions_SetReconnectedCB) \
  DO(natsOptions_SetClosedCB) \
  DO(natsOptions_SetErrorHandler) \
  DO(natsConnection_Connect) \
  DO(natsConnection_Close) \
  DO(natsConnection_Destroy) \
  DO(natsConnection_Subscribe) \
  DO(natsConnection_PublishMsg) \
  DO(natsConnection_GetMaxPayload) \
  DO(natsConnection_GetConnectedUrl) \
  DO(natsConnection_GetLastError) \
  DO(natsSubscription_SetPendingLimits) \
  DO(natsSubscription_Destroy) \
  DO(natsMsg_Create) \
  DO(natsMsg_Destroy) \
  DO(natsMsg_GetSubject) \
  DO(natsMsg_GetReply) \
  DO(natsMsg_GetData) \
  DO(natsMsg_GetDataLength) \
  DO(natsMsgHeader_Set) \
  DO(natsMsgHeader_Get) \
  DO(natsStatus_GetText) \
  DO(nats_GetLastError)

#define MEMBER(name) __typeof__(name) *name;
static struct { FUNCTIONS(MEMBER) } nats;
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static bool is_loaded;

enum { most_subscriptions = 16 };

struct settle_nats {
  struct settle_nats_handlers handlers;
  natsConnection *connection;
  natsSubscription *subscriptions[most_subscriptions];
  int subscription_count;
  // Released by the callback that says that the connection is closed.
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool is_closed;
};

/// Writes texts one after the other, as far as there is room.
static void say(char *room, int size, const char *const texts[3]) {
  int used = 0;
  for (int place = 0; place < 3; place += 1)
    for (const char *next = texts[place]; next != NULL && *next != 0 && used + 1 < size; next += 1) {
      room[used] = *next;
      used += 1;
    }
  if (size > 0) room[used] = 0;
}

// The release of libnats that the headers are of is part of the name of its file.
#define TEXT(number) #number
#define FILE_OF(major, minor) "libnats.so." TEXT(major) "." TEXT(minor)
static const char own_library[] = FILE_OF(NATS_VERSION_MAJOR, NATS_VERSION_MINOR);

/// Opens a library. That of the headers may also be another release of the same major version: all
/// types that are used of it are opaque.
static void *open_library(const char *library, char *problem, int size) {
  // It stays loaded: its threads may run until the process ends.
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) say(problem, size, (const char *[3]){dlerror()});
  for (int minor = 40; library == own_library && handle == NULL && minor >= 0; minor -= 1) {
    char other[sizeof own_library + 8];
    snprintf(other, sizeof other, "libnats.so.%d.%d", NATS_VERSION_MAJOR, minor);
    handle = dlopen(other, RTLD_NOW | RTLD_LOCAL);
  }
  return handle;
}

bool settle_nats_load(const char *library, char *problem, int size) {
  pthread_mutex_lock(&loading);
  if (!is_loaded) {
    if (library == NULL) library = own_library;
    void *handle = open_library(library, problem, size);
    is_loaded = handle != NULL;
#define LOAD(name) \
  if (is_loaded && (nats.name = (__typeof__(name) *)dlsym(handle, #name)) == NULL) { \
    say(problem, size, (const char *[3]){library, " has no function ", #name}); \
    is_loaded = false; \
  }
    FUNCTIONS(LOAD)
  }
  bool result = is_loaded;
  pthread_mutex_unlock(&loading);
  return result;
}

static void when_connected(natsConnection *connection, void *closure) {
  (void)connection;
  struct settle_nats *self = closure;
  self->handlers.connected(self->handlers.owner);
}

static void when_disconnected(natsConnection *connection, void *closure) {
  struct settle_nats *self = closure;
  const char *reason = "";
  if (nats.natsConnection_GetLastError(connection, &reason) == NATS_OK || reason == NULL) reason = "";
  self->handlers.disconnected(self->handlers.owner, reason);
}

static void when_closed(natsConnection *connection, void *closure) {
  (void)connection;
  struct settle_nats *self = closure;
  pthread_mutex_lock(&self->lock);
  self->is_closed = true;
  pthread_cond_signal(&self->changed);
  pthread_mutex_unlock(&self->lock);
}

// Without a handler libnats prints to standard error.
static void when_failed(natsConnection *connection, natsSubscription *subscription, natsStatus status, void *closure) {
  (void)connection, (void)subscription, (void)status, (void)closure;
}

static void when_received(natsConnection *connection, natsSubscription *subscription, natsMsg *message, void *closure) {
  (void)connection, (void)subscription;
  struct settle_nats *self = closure;
  const char *status = NULL, *last = NULL;
  if (nats.natsMsgHeader_Get(message, "Status", &status) != NATS_OK) status = NULL;
  if (nats.natsMsgHeader_Get(message, "Nats-Last-Consumer", &last) != NATS_OK) last = NULL;
  self->handlers.message(
      self->handlers.owner, nats.natsMsg_GetSubject(message), nats.natsMsg_GetReply(message), status,
      last, nats.natsMsg_GetData(message), nats.natsMsg_GetDataLength(message));
  nats.natsMsg_Destroy(message);
}

static natsStatus set_up(natsOptions *options, const struct settle_nats_settings *settings, struct settle_nats *self) {
  natsStatus status = nats.natsOptions_SetServers(options, (const char **)settings->servers, settings->server_count);
#define STEP(call) if (status == NATS_OK) status = (call)
  if (settings->name) STEP(nats.natsOptions_SetName(options, settings->name));
  if (settings->user) STEP(nats.natsOptions_SetUserInfo(options, settings->user, settings->password));
  if (settings->credentials)
    STEP(nats.natsOptions_SetUserCredentialsFromFiles(options, settings->credentials, NULL));
  if (settings->is_encrypted) STEP(nats.natsOptions_SetSecure(options, true));
  if (settings->ca) STEP(nats.natsOptions_LoadCATrustedCertificates(options, settings->ca));
  if (settings->certificate && settings->key)
    STEP(nats.natsOptions_LoadCertificatesChain(options, settings->certificate, settings->key));
  STEP(nats.natsOptions_SetMaxReconnect(options, -1));
  STEP(nats.natsOptions_SetReconnectWait(options, 250));
  STEP(nats.natsOptions_SetTimeout(options, 2000));
  // A server that is silent for 4 s is given up.
  STEP(nats.natsOptions_SetPingInterval(options, 2000));
  STEP(nats.natsOptions_SetMaxPingsOut(options, 1));
  STEP(nats.natsOptions_SetNoEcho(options, true));
  // One thread for all subscriptions: what arrives keeps its order.
  STEP(nats.natsOptions_UseGlobalMessageDelivery(options, true));
  STEP(nats.natsOptions_SetDisconnectedCB(options, when_disconnected, self));
  STEP(nats.natsOptions_SetReconnectedCB(options, when_connected, self));
  STEP(nats.natsOptions_SetClosedCB(options, when_closed, self));
  STEP(nats.natsOptions_SetErrorHandler(options, when_failed, NULL));
#undef STEP
  return status;
}

struct settle_nats *settle_nats_connect(
    const struct settle_nats_settings *settings, const struct settle_nats_handlers *handlers,
    char *problem, int size) {
  struct settle_nats *self = calloc(1, sizeof *self);
  natsOptions *options = NULL;
  natsStatus status = self == NULL ? NATS_NO_MEMORY : nats.natsOptions_Create(&options);
  if (status == NATS_OK) {
    self->handlers = *handlers;
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->changed, NULL);
    status = set_up(options, settings, self);
  }
  if (status == NATS_OK) status = nats.natsConnection_Connect(&self->connection, options);
  if (status != NATS_OK) {
    natsStatus last = status;
    const char *detail = nats.nats_GetLastError(&last);
    const char *text = nats.natsStatus_GetText(status);
    bool has_detail = detail != NULL && detail[0] != 0;
    say(problem, size, (const char *[3]){text, has_detail ? ": " : NULL, has_detail ? detail : NULL});
  }
  nats.natsOptions_Destroy(options);
  if (status == NATS_OK) return self;
  free(self);
  return NULL;
}

bool settle_nats_subscribe(struct settle_nats *self, const char *subject) {
  if (self->subscription_count >= most_subscriptions) return false;
  natsSubscription **place = &self->subscriptions[self->subscription_count];
  if (nats.natsConnection_Subscribe(place, self->connection, subject, when_received, self) != NATS_OK)
    return false;
  self->subscription_count += 1;
  // Every message counts: a reply that is dropped would look like a lost one.
  return nats.natsSubscription_SetPendingLimits(*place, -1, -1) == NATS_OK;
}

bool settle_nats_publish(
    struct settle_nats *self, const char *subject, const char *reply, const char *expected,
    const char *id, const void *data, int size) {
  natsMsg *message = NULL;
  natsStatus status = nats.natsMsg_Create(&message, subject, reply, data, size);
  if (status == NATS_OK && expected != NULL)
    status = nats.natsMsgHeader_Set(message, "Nats-Expected-Last-Subject-Sequence", expected);
  if (status == NATS_OK && id != NULL) status = nats.natsMsgHeader_Set(message, "Nats-Msg-Id", id);
  if (status == NATS_OK) status = nats.natsConnection_PublishMsg(self->connection, message);
  nats.natsMsg_Destroy(message);
  return status == NATS_OK;
}

long long settle_nats_largest(struct settle_nats *self) {
  return nats.natsConnection_GetMaxPayload(self->connection);
}

void settle_nats_server(struct settle_nats *self, char *url, int size) {
  if (nats.natsConnection_GetConnectedUrl(self->connection, url, (size_t)size) != NATS_OK) url[0] = 0;
}

void settle_nats_close(struct settle_nats *self) {
  nats.natsConnection_Close(self->connection);
  pthread_mutex_lock(&self->lock);
  while (!self->is_closed) pthread_cond_wait(&self->changed, &self->lock);
  pthread_mutex_unlock(&self->lock);
  for (int place = 0; place < self->subscription_count; place += 1)
    nats.natsSubscription_Destroy(self->subscriptions[place]);
  nats.natsConnection_Destroy(self->connection);
  pthread_mutex_destroy(&self->lock);
  pthread_cond_destroy(&self->changed);
  free(self);
}
