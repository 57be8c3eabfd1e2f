/* Stands in for NCCL, libnccl.so.2: processes of one machine exchange pieces through a file that
   all map, in the order of the stand-in driver's streams. A communicator is joined, and an abort
   ends its collectives, without waiting for others, as of one that does not block. */
#include "device/cuda/nccl_api.h"
#include "stand_in.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Every function of the table has the type that the table says. */
#define NCCL(name, result, parameters) result nccl##name parameters;
#include "device/cuda/nccl_functions.def"

enum { SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4, MOST_RANKS = 8, SLOT_BYTES = 1 << 16 };

/** The state of a communicator, in memory that its processes share. */
typedef struct shared {
  atomic_int joined, arrived, turn;
  char slots[MOST_RANKS][SLOT_BYTES];
} shared;

struct nccl_communicator_object {
  shared *at;
  char path[NCCL_ID_BYTES];
  int rank, size;
  atomic_int running; /* collectives that streams have */
  atomic_bool is_aborted;
  nccl_result failure; /* what the communicator tells from its first collective on */
};

static atomic_int collectives;

int stand_in_collectives(void) { return collectives; }

/** The result that STAND_IN_NCCL says for a call: "ncclAllReduce:2"; 0: none. */
static nccl_result fault_of(const char *call) {
  const char *text = getenv("STAND_IN_NCCL");
  size_t n = strlen(call);
  return text && !strncmp(text, call, n) && text[n] == ':' ? atoi(text + n + 1) : 0;
}

const char *ncclGetErrorString(nccl_result r) { return r ? "a fault of the stand-in" : "no error"; }

const char *ncclGetLastError(nccl_communicator c) {
  (void)c;
  return "";
}

/* Communicators. */

nccl_result ncclGetUniqueId(nccl_id *id) {
  const char *folder = getenv("TMPDIR");
  nccl_result r = fault_of("ncclGetUniqueId");
  if (r) return r;
  memset(id, 0, sizeof *id);
  snprintf(id->bytes, sizeof id->bytes, "%.90s/stand-in-nccl-XXXXXX", folder ? folder : "/tmp");
  int fd = mkstemp(id->bytes);
  if (fd < 0) return SYSTEM_ERROR;
  bool fits = !ftruncate(fd, sizeof(shared));
  close(fd);
  return fits ? 0 : SYSTEM_ERROR;
}

nccl_result ncclCommInitRankConfig(nccl_communicator *communicator, int size, nccl_id id, int rank,
                                   nccl_config *config) {
  nccl_result r = fault_of("ncclCommInitRankConfig");
  if (r) {
    unlink(id.bytes);
    return r;
  }
  if (config->size != sizeof *config || config->magic != NCCL_CONFIG_MAGIC || config->blocking ||
      size < 1 || size > MOST_RANKS || rank < 0 || rank >= size)
    return INVALID_ARGUMENT;
  nccl_communicator c = calloc(1, sizeof *c);
  int fd = open(id.bytes, O_RDWR);
  void *at =
      fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (fd >= 0) close(fd);
  if (!c || at == MAP_FAILED) {
    free(c);
    return SYSTEM_ERROR;
  }
  c->at = at;
  c->rank = rank;
  c->size = size;
  memcpy(c->path, id.bytes, sizeof c->path);
  if (atomic_fetch_add(&c->at->joined, 1) + 1 == size) unlink(c->path);
  *communicator = c;
  return NCCL_IN_PROGRESS;
}

nccl_result ncclCommGetAsyncError(nccl_communicator c, nccl_result *now) {
  *now = c->failure;
  if (!c->failure && atomic_load(&c->at->joined) < c->size) *now = NCCL_IN_PROGRESS;
  return fault_of("ncclCommGetAsyncError");
}

static void pause_shortly(void) { nanosleep(&(struct timespec){0, 20000}, NULL); }

nccl_result ncclCommDestroy(nccl_communicator c) {
  while (atomic_load(&c->running)) pause_shortly();
  unlink(c->path);
  munmap(c->at, sizeof *c->at);
  free(c);
  return 0;
}

nccl_result ncclCommAbort(nccl_communicator c) {
  atomic_store(&c->is_aborted, true);
  return ncclCommDestroy(c);
}

/* Collectives. */

typedef enum form { REDUCE, GATHER, SCATTER, BROADCAST } form;

typedef struct exchange {
  nccl_communicator c;
  form form;
  const char *from;
  char *to;
  size_t count, element;
  int type, op, root;
} exchange;

/** Waits until all processes are here; false if the communicator is aborted first. */
static bool meet(nccl_communicator c) {
  shared *s = c->at;
  int turn = atomic_load(&s->turn);
  if (atomic_fetch_add(&s->arrived, 1) + 1 == c->size) {
    atomic_store(&s->arrived, 0);
    atomic_fetch_add(&s->turn, 1);
  }
  while (atomic_load(&s->turn) == turn && !atomic_load(&c->is_aborted)) pause_shortly();
  return !atomic_load(&c->is_aborted);
}

#define COMBINE(type)                                                                           \
  for (size_t i = 0; i < n; i++) {                                                              \
    type a = ((type *)to)[i], b = ((const type *)from)[i];                                      \
    ((type *)to)[i] = (type)(op == 0 ? a + b : op == 1 ? a * b : (op == 2) == (a > b) ? a : b); \
  }                                                                                             \
  return

static void combine(void *to, const void *from, size_t n, int type, int op) {
  switch (type) {
  case 0: COMBINE(int8_t);
  case 1: COMBINE(uint8_t);
  case 2: COMBINE(int32_t);
  case 3: COMBINE(uint32_t);
  case 4: COMBINE(int64_t);
  case 5: COMBINE(uint64_t);
  case 7: COMBINE(float);
  default: COMBINE(double);
  }
}

static size_t element_bytes(int type) {
  static const size_t bytes[] = {1, 1, 4, 4, 8, 8, 0, 4, 8};
  return type >= 0 && type < 9 ? bytes[type] : 0;
}

/** Moves a piece of n elements: `row` is the one of `from` that this process gives, and `to` is
    NULL where it gets nothing. */
static bool move_piece(const exchange *x, size_t row, size_t done, size_t n, char *to) {
  nccl_communicator c = x->c;
  size_t bytes = n * x->element;
  char(*slots)[SLOT_BYTES] = c->at->slots;
  memcpy(slots[c->rank], x->from + (row * x->count + done) * x->element, bytes);
  if (!meet(c)) return false;
  if (to && x->form == GATHER)
    for (int i = 0; i < c->size; i++)
      memcpy(to + (size_t)i * x->count * x->element, slots[i], bytes);
  else if (to)
    memcpy(to, slots[x->form == BROADCAST ? x->root : 0], bytes);
  for (int i = 1; i < c->size && to && (x->form == REDUCE || x->form == SCATTER); i++)
    combine(to, slots[i], n, x->type, x->op);
  return meet(c);
}

static void run_exchange(const void *arguments) {
  const exchange *x = arguments;
  size_t rows = x->form == SCATTER ? (size_t)x->c->size : 1, most = SLOT_BYTES / x->element;
  bool goes_on = true;
  for (size_t row = 0; row < rows; row++)
    for (size_t done = 0; done < x->count && goes_on; done += most) {
      size_t n = x->count - done < most ? x->count - done : most;
      bool gets = x->form != SCATTER || row == (size_t)x->c->rank;
      goes_on = move_piece(x, row, done, n, gets ? x->to + done * x->element : NULL);
    }
  atomic_fetch_sub(&x->c->running, 1);
}

/** Hands a collective to a stream. "skip" leaves it out here, so that others wait for it. */
static nccl_result start(const char *call, exchange x, cuda_stream stream) {
  nccl_result r = fault_of(call);
  x.element = element_bytes(x.type);
  if (r || !x.element || x.op < 0 || x.op > 3) return r ? r : INVALID_ARGUMENT;
  collectives++;
  x.c->failure = fault_of("later");
  if (fault_of("skip") || x.c->failure) return 0;
  atomic_fetch_add(&x.c->running, 1);
  return stand_in_call(stream, run_exchange, &x, sizeof x) ? SYSTEM_ERROR : NCCL_IN_PROGRESS;
}

nccl_result ncclAllReduce(const void *from, void *to, size_t n, int type, int op,
                          nccl_communicator c, cuda_stream stream) {
  return start("ncclAllReduce", (exchange){c, REDUCE, from, to, n, 0, type, op, 0}, stream);
}

nccl_result ncclAllGather(const void *from, void *to, size_t n, int type, nccl_communicator c,
                          cuda_stream stream) {
  return start("ncclAllGather", (exchange){c, GATHER, from, to, n, 0, type, 0, 0}, stream);
}

nccl_result ncclReduceScatter(const void *from, void *to, size_t n, int type, int op,
                              nccl_communicator c, cuda_stream stream) {
  return start("ncclReduceScatter", (exchange){c, SCATTER, from, to, n, 0, type, op, 0}, stream);
}

nccl_result ncclBroadcast(const void *from, void *to, size_t n, int type, int root,
                          nccl_communicator c, cuda_stream stream) {
  return start("ncclBroadcast", (exchange){c, BROADCAST, from, to, n, 0, type, 0, root}, stream);
}
