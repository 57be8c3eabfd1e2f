/* Implements the engine MPI over Open MPI, opened at run time (MPI 3.1's nonblocking collectives,
   so that a process that does not come costs a time limit). Handles are addresses of Open MPI's
   variables. A group has a communicator of its own, with one request under way at a time. */
#include "tensor/group/group_engine.h"

#include "base/library.h"
#include "base/thread.h"

typedef void *mpi_handle; /* a communicator, type, operation, error handler or request */

typedef struct mpi_api {
#define MPI(name, parameters) int(*name) parameters;
#define MPI_VARIABLE(name)    mpi_handle name##_handle;
#include "tensor/group/mpi_functions.def"
} mpi_api;

enum { MPI_THREAD_SERIALIZED = 2, MPI_ERROR_BYTES = 256, STATUS_BYTES = 64 };

typedef struct mpi_group {
  mpi_handle communicator;
  mpi_handle request; /* under way */
} mpi_group;

/** MPI starts and ends once in a process, and serves one thread at a time. */
static struct mpi_process {
  mutex lock; /* of all of it, and of calls */
  mpi_api api;
  size_t n_groups; /* that are open, or were left */
  bool is_ours;    /* started here, and to be ended here */
} mpi_process = {.lock = PTHREAD_MUTEX_INITIALIZER};

static tn_status open_library(diag *d) {
#define MPI(name, parameters) "MPI_" #name,
#define MPI_VARIABLE(name)    "ompi_mpi_" #name,
  static const char *const names[] = {
#include "tensor/group/mpi_functions.def"
  };
  enum {
#define MPI_VARIABLE(name) NUMBER_##name,
#include "tensor/group/mpi_functions.def"
    VARIABLES
  };
  enum { NAMES = sizeof names / sizeof *names };
  static const library open_mpi = {.file = "libmpi.so.40",
                                   .what = "Open MPI",
                                   .version = "MPI 3.1",
                                   .hint = "install it (on Debian: apt install openmpi-bin) and "
                                           "start the program by mpirun",
                                   .names = names,
                                   .n_names = NAMES,
                                   .n_variables = VARIABLES};
  _Static_assert(sizeof names == sizeof mpi_process.api, "a pointer for each name");
  return library_open(&open_mpi, &mpi_process.api, d);
}

static tn_status check(int error, const char *doing, diag *d) {
  char text[MPI_ERROR_BYTES] = "";
  int length = 0;
  if (!error) return TN_OK;
  mpi_process.api.Error_string(error, text, &length);
  return diag_set(d, TN_ERR_IO, "MPI cannot %s: %s", doing, text);
}

/** Starts MPI unless the program has. */
static tn_status start_mpi(diag *d) {
  int is_started = 0, is_ended = 0, level = 0;
  mpi_process.api.Initialized(&is_started);
  mpi_process.api.Finalized(&is_ended);
  if (is_ended) return diag_set(d, TN_ERR_DEVICE, "MPI has ended in this process");
  tn_status s = is_started
                    ? check(mpi_process.api.Query_thread(&level), "tell of threads", d)
                    : check(mpi_process.api.Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level),
                            "start", d);
  mpi_process.is_ours |= s == TN_OK && !is_started;
  if (s == TN_OK && level < MPI_THREAD_SERIALIZED)
    s = diag_set(d, TN_ERR_DEVICE,
                 "MPI was started for one thread alone: use MPI_Init_thread with "
                 "MPI_THREAD_SERIALIZED");
  return s;
}

static tn_status open_communicator(mpi_group *g, int *rank, int *size, diag *d) {
  tn_status s = check(mpi_process.api.Comm_dup(mpi_process.api.comm_world_handle, &g->communicator),
                      "make a communicator", d);
  if (s != TN_OK) return s;
  mpi_process.api.Comm_set_errhandler(g->communicator, mpi_process.api.errors_return_handle);
  s = check(mpi_process.api.Comm_rank(g->communicator, rank), "tell the rank", d);
  if (s == TN_OK) s = check(mpi_process.api.Comm_size(g->communicator, size), "tell the size", d);
  if (s != TN_OK) mpi_process.api.Comm_free(&g->communicator);
  return s;
}

tn_status mpi_open(const mem *m, void **state, int64_t *rank, int64_t *size, diag *d) {
  int of[2] = {0, 0};
  mpi_group *g = mem_calloc(m, 1, sizeof *g);
  if (!g) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  mutex_lock(&mpi_process.lock);
  tn_status s = mpi_process.n_groups ? TN_OK : open_library(d);
  if (s == TN_OK && !mpi_process.n_groups) s = start_mpi(d);
  if (s == TN_OK) s = open_communicator(g, &of[0], &of[1], d);
  if (s == TN_OK) mpi_process.n_groups++;
  mutex_unlock(&mpi_process.lock);
  *rank = of[0];
  *size = of[1];
  *state = g;
  if (s != TN_OK) {
    mem_free(m, g, sizeof *g);
    *state = NULL;
  }
  return s;
}

/** Ends nothing that would wait for processes which do not come: a stuck group is left as it is. */
static void mpi_close(const mem *m, void *state, bool is_stuck) {
  mpi_group *g = state;
  mutex_lock(&mpi_process.lock);
  if (!is_stuck) {
    mpi_process.api.Comm_free(&g->communicator);
    if (--mpi_process.n_groups == 0 && mpi_process.is_ours) mpi_process.api.Finalize();
  }
  mutex_unlock(&mpi_process.lock);
  if (!is_stuck) mem_free(m, g, sizeof *g); /* else the request's handle is in it */
}

static mpi_handle type_handle(dtype t) {
  const struct {
    dtype type;
    mpi_handle handle;
  } types[] = {
#define MPI_TYPE(dtype, name) {dtype, mpi_process.api.name##_handle},
#include "tensor/group/mpi_functions.def"
  };
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (types[i].type == t) return types[i].handle;
  return NULL;
}

static mpi_handle reduction_handle(tn_reduction r) {
  const struct {
    tn_reduction reduction;
    mpi_handle handle;
  } reductions[] = {
#define MPI_REDUCTION(reduction, name) {reduction, mpi_process.api.name##_handle},
#include "tensor/group/mpi_functions.def"
  };
  for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
    if (reductions[i].reduction == r) return reductions[i].handle;
  return NULL;
}

static int start_request(mpi_group *g, const collective_piece *p) {
  const mpi_api *api = &mpi_process.api;
  mpi_handle type = type_handle(p->dtype), op = reduction_handle(p->reduction);
  mpi_handle bytes = api->byte_handle, in = g->communicator;
  int n = (int)p->count, size = n * (int)dtype_bytes(p->dtype);
  switch (p->kind) {
  case COLLECTIVE_ALL_REDUCE: return api->Iallreduce(p->from, p->to, n, type, op, in, &g->request);
  case COLLECTIVE_ALL_GATHER:
    return api->Iallgather(p->from, size, bytes, p->to, size, bytes, in, &g->request);
  case COLLECTIVE_REDUCE_SCATTER:
    return api->Ireduce_scatter_block(p->from, p->to, n, type, op, in, &g->request);
  default: return api->Ibcast(p->to, size, bytes, (int)p->root, in, &g->request);
  }
}

static tn_status mpi_start(void *state, const collective_piece *p, diag *d) {
  mutex_lock(&mpi_process.lock);
  tn_status s = check(start_request(state, p), "start a collective", d);
  mutex_unlock(&mpi_process.lock);
  return s;
}

static tn_status mpi_is_done(void *state, bool *done, diag *d) {
  mpi_group *g = state;
  int flag = 0;
  char status[STATUS_BYTES]; /* an MPI_Status, which is smaller */
  mutex_lock(&mpi_process.lock);
  tn_status s =
      check(mpi_process.api.Test(&g->request, &flag, status), "go on with a collective", d);
  mutex_unlock(&mpi_process.lock);
  *done = flag != 0;
  return s;
}

const group_engine mpi_engine = {"MPI", mpi_close, mpi_start, mpi_is_done, NULL};
