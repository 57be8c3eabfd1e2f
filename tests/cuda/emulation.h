/* CUDA C on a processor: compiles kernels as C++ and runs their groups one after another. A worker
   runs until its group meets at a barrier, where it waits in a fibre of its own; one fibre runs all
   workers of a kernel without barriers. The order in which workers run between two barriers is
   random, which shows what is not ordered by them. A group part of whose workers are at another
   barrier than the rest, or at none, ends the launch with a fault. A warp meets likewise where it
   computes a tile: each worker writes its part of the matrices, and then reads those of others.
   What a worker copies as it goes on arrives when it waits for that.

   Each kernel gets an entry `emulated_NAME`, and `emulated_sizes_NAME`, which tells the sizes of
   its parameters, by EMULATED(NAME) after the kernels. */
#ifndef TENON_TESTS_CUDA_EMULATION_H
#define TENON_TESTS_CUDA_EMULATION_H

#include <setjmp.h>
#include <stdlib.h>
#include <ucontext.h>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(workers)
/* A thread runs one group at a time. */
#define __shared__      static thread_local
#define __syncthreads() emulation::meet(__LINE__)

extern "C" {
float sqrtf(float) noexcept;
double sqrt(double) noexcept;
float floorf(float) noexcept;
double floor(double) noexcept;
float ceilf(float) noexcept;
double ceil(double) noexcept;
float truncf(float) noexcept;
double trunc(double) noexcept;
float rintf(float) noexcept;
double rint(double) noexcept;
float fabsf(float) noexcept;
double fabs(double) noexcept;
float fmaf(float, float, float) noexcept;
double fma(double, double, double) noexcept;
}

struct dim3 {
  unsigned x, y, z;
};
static thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace emulation {

enum { MOST_WORKERS = 1024, STACK_BYTES = 1 << 17, WARP = 32, MOST_WORDS = 6 };

/** A fibre, which runs a worker after another, each from its begin to its end. It begins by its
    context, and goes on by a jump, which needs no call of the system. */
struct fibre {
  ucontext_t context;
  jmp_buf place;
  char *stack;
  unsigned worker;
  int site;     /* the barrier at which it waits; 0: it ran out of workers */
  bool is_warp; /* it waits for its warp alone, which computes a tile */
};

/** A copy that a worker has not waited for yet. */
struct copy {
  void *to;
  char bytes[16];
  unsigned n, group; /* number of the waits before it */
};

/** The copies of a worker, in order. */
struct copies {
  copy *all;
  unsigned n, room, waits;
};

/** The group that a thread runs. */
struct team {
  void (*call)(void *);
  void *kernel;
  unsigned n, next; /* workers; those that began */
  unsigned ended, fibres, order[MOST_WORKERS];
  fibre all[MOST_WORKERS], *running;
  jmp_buf scheduler;
  unsigned seed;
  unsigned tiles[MOST_WORKERS];             /* that each worker computed */
  float words[2][MOST_WORKERS][MOST_WORDS]; /* of operands of a tile, by turns */
  copies copied[MOST_WORKERS];
};
static thread_local team *current;

static unsigned random_below(team *t, unsigned limit) {
  t->seed = t->seed * 1664525u + 1013904223u;
  return (unsigned)((unsigned long long)t->seed * limit >> 32);
}

static void shuffle(team *t, unsigned *list, unsigned n) {
  for (unsigned i = 0; i < n; i++) list[i] = i;
  for (unsigned i = n; i > 1; i--) {
    unsigned k = random_below(t, i), other = list[k];
    list[k] = list[i - 1];
    list[i - 1] = other;
  }
}

/** Makes a worker the running one. */
static void become(unsigned worker) {
  threadIdx.x = worker % blockDim.x;
  threadIdx.y = worker / blockDim.x % blockDim.y;
  threadIdx.z = worker / blockDim.x / blockDim.y;
}

static __attribute__((noinline, unused)) void meet(int site, bool is_warp = false) {
  team *t = current;
  fibre *f = t->running;
  f->site = site;
  f->is_warp = is_warp;
  if (!_setjmp(f->place)) _longjmp(t->scheduler, 1);
}

static void run_workers() {
  team *t = current;
  fibre *f = t->running;
  while (t->next < t->n) {
    f->worker = t->order[t->next++];
    become(f->worker);
    t->call(t->kernel);
    t->ended++;
  }
  f->site = 0;
  _longjmp(t->scheduler, 1);
}

static __attribute__((noinline)) void resume(team *t, fibre *f, bool begins) {
  t->running = f;
  become(f->worker);
  if (_setjmp(t->scheduler)) return;
  if (begins)
    setcontext(&f->context);
  else
    _longjmp(f->place, 1);
}

static bool begin_fibre(team *t) {
  fibre *f = &t->all[t->fibres++];
  if (!f->stack) f->stack = (char *)malloc(STACK_BYTES);
  if (!f->stack) return false;
  getcontext(&f->context);
  f->context.uc_stack.ss_sp = f->stack;
  f->context.uc_stack.ss_size = STACK_BYTES;
  f->context.uc_link = NULL;
  f->worker = 0;
  makecontext(&f->context, run_workers, 0);
  resume(t, f, true);
  return true;
}

/** True if a fibre's warp, or group, waits where it does. */
static bool has_met(const team *t, const fibre *f) {
  unsigned n = 0, all = f->is_warp ? WARP : t->n;
  for (unsigned i = 0; i < t->fibres; i++) {
    const fibre *other = &t->all[i];
    if (f->is_warp && other->worker / WARP != f->worker / WARP) continue;
    n += other->site == f->site && other->is_warp == f->is_warp;
  }
  return n == all;
}

/** Lets warps go on that wait for themselves, or else the group; false: its workers part. */
static bool go_on(team *t) {
  unsigned order[MOST_WORKERS], n = 0;
  bool is_warp = false, goes[MOST_WORKERS];
  for (unsigned i = 0; i < t->fibres; i++) is_warp |= t->all[i].site && t->all[i].is_warp;
  for (unsigned i = 0; i < t->fibres; i++) {
    const fibre *f = &t->all[i];
    goes[i] = is_warp ? f->site && f->is_warp : true;
    if (goes[i] && !has_met(t, f)) return false;
    n += goes[i];
  }
  shuffle(t, order, t->fibres);
  for (unsigned i = 0; i < t->fibres; i++)
    if (goes[order[i]]) resume(t, &t->all[order[i]], false);
  return n > 0;
}

/** Runs one group; false: its workers part. */
static bool run_group(team *t) {
  t->next = t->ended = t->fibres = 0;
  for (unsigned i = 0; i < t->n; i++) t->tiles[i] = t->copied[i].n = t->copied[i].waits = 0;
  shuffle(t, t->order, t->n);
  while (t->next < t->n)
    if (!begin_fibre(t)) return false;
  while (t->ended < t->n)
    if (!go_on(t)) return false;
  return true;
}

static void free_team(team *t) {
  for (unsigned i = 0; i < MOST_WORKERS; i++) free(t->all[i].stack), free(t->copied[i].all);
  free(t);
}

/** Runs all groups of a launch; 0, or 1 if the workers of one part. */
static int run_grid(void (*call)(void *), void *kernel, const unsigned grid[3],
                    const unsigned group[3], unsigned seed) {
  team *t = (team *)calloc(1, sizeof *t);
  bool fine = t && group[0] * group[1] * group[2] <= MOST_WORKERS;
  if (fine) t->call = call, t->kernel = kernel, t->seed = seed;
  if (fine) t->n = group[0] * group[1] * group[2];
  current = t;
  gridDim = {grid[0], grid[1], grid[2]};
  blockDim = {group[0], group[1], group[2]};
  for (unsigned z = 0; z < grid[2] && fine; z++)
    for (unsigned y = 0; y < grid[1] && fine; y++)
      for (unsigned x = 0; x < grid[0] && fine; x++) {
        blockIdx = {x, y, z};
        fine = run_group(t);
      }
  if (t) free_team(t);
  return !fine;
}

/* Tiles of a warp: mma.m16n8k16 by its description (PTX ISA 9.0). */

static float of_bits(unsigned bits) {
  union {
    unsigned bits;
    float number;
  } u = {bits};
  return u.number;
}

static unsigned bits_of(float number) {
  union {
    float number;
    unsigned bits;
  } u = {number};
  return u.bits;
}

static float of_bf16(unsigned bits) { return of_bits(bits << 16); }

static float of_f16(unsigned bits) {
  unsigned sign = (bits & 0x8000) << 16, rest = bits & 0x7fff;
  if (rest >= 0x7c00) return of_bits(sign | 0x7f800000 | (rest & 0x3ff) << 13);
  return of_bits(sign | bits_of(of_bits(rest << 13) * of_bits(0x77800000))); /* 2¹¹² */
}

/** A word of an operand of a worker's warp. */
static unsigned word_of(const team *t, unsigned turn, unsigned lane, unsigned number) {
  return bits_of(t->words[turn][t->running->worker / WARP * WARP + lane][number]);
}

/** A sum of a tile: row and column of it, and what it was. */
static float add_products(const team *t, unsigned turn, unsigned row, unsigned column, float sum,
                          float (*number)(unsigned)) {
  for (unsigned k = 0; k < 8; k++) {
    unsigned x = word_of(t, turn, row % 8 * 4 + k % 4, k / 4 * 2 + row / 8);
    unsigned y = word_of(t, turn, column * 4 + k % 4, 4 + k / 4);
    sum += number(x >> 16) * number(y >> 16);
    sum += number(x & 0xffff) * number(y & 0xffff);
  }
  return sum;
}

template <class S, class X, class Y>
static __attribute__((noinline)) S multiply(S s, X x, Y y, float (*number)(unsigned)) {
  team *t = current;
  unsigned worker = t->running->worker, turn = t->tiles[worker]++ % 2, lane = worker % WARP;
  for (unsigned i = 0; i < 4; i++) t->words[turn][worker][i] = x.at[i];
  for (unsigned i = 0; i < 2; i++) t->words[turn][worker][4 + i] = y.at[i];
  meet(-(int)t->tiles[worker], true);
  for (unsigned i = 0; i < 4; i++)
    s.at[i] = add_products(t, turn, i / 2 * 8 + lane / 4, lane % 4 * 2 + i % 2, s.at[i], number);
  return s;
}

/* Copies. */

static copies *own_copies() {
  team *t = current;
  return &t->copied[t->running->worker];
}

static __attribute__((noinline, unused)) void begin_copy(void *to, const void *from, unsigned n,
                                                         bool is_there) {
  copies *c = own_copies();
  if (c->n == c->room) {
    c->room = 2 * c->room + 16;
    c->all = (copy *)realloc(c->all, c->room * sizeof *c->all);
    if (!c->all) abort();
  }
  copy *x = &c->all[c->n++];
  x->to = to, x->n = n, x->group = c->waits;
  for (unsigned i = 0; i < n; i++) x->bytes[i] = is_there ? ((const char *)from)[i] : 0;
}

/** Ends a group of copies, and all but the `pending` latest; < 0: none. */
static __attribute__((noinline, unused)) void end_copies(int pending) {
  copies *c = own_copies();
  unsigned left = 0;
  c->waits++;
  for (unsigned i = 0; i < c->n; i++) {
    copy x = c->all[i];
    bool is_done = pending >= 0 && x.group + (unsigned)pending < c->waits;
    for (unsigned k = 0; k < x.n && is_done; k++) ((char *)x.to)[k] = x.bytes[k];
    if (!is_done) c->all[left++] = x;
  }
  c->n = left;
}

/* Calls with arguments from a driver's list of pointers to them. */

template <unsigned... I> struct numbers {};
template <unsigned n, unsigned... I> struct count : count<n - 1, n - 1, I...> {};
template <unsigned... I> struct count<0, I...> { typedef numbers<I...> type; };

template <class... A> struct kernel {
  void (*function)(A...);
  void **arguments;
  template <unsigned... I> void call(numbers<I...>) { function(*(A *)arguments[I]...); }
  static void run(void *k) { ((kernel *)k)->call(typename count<sizeof...(A)>::type()); }
};

template <class... A>
int launch(void (*function)(A...), void **arguments, const unsigned *grid, const unsigned *group,
           unsigned seed) {
  kernel<A...> k = {function, arguments};
  return run_grid(kernel<A...>::run, &k, grid, group, seed);
}

/** Writes the sizes of a kernel's parameters, and returns how many there are. */
template <class... A> unsigned list_sizes(void (*)(A...), unsigned *sizes) {
  const unsigned all[] = {0, (unsigned)sizeof(A)...};
  for (unsigned i = 0; i < sizeof...(A); i++) sizes[i] = all[i + 1];
  return sizeof...(A);
}

} // namespace emulation

template <class S, class X, class Y> static S mma_bf16(S s, X x, Y y) {
  return emulation::multiply(s, x, y, emulation::of_bf16);
}
template <class S, class X, class Y> static S mma_f16(S s, X x, Y y) {
  return emulation::multiply(s, x, y, emulation::of_f16);
}

template <int n, class T> static void copy_ahead(T *to, const T *from, bool is_there) {
  emulation::begin_copy(to, from, n, is_there);
}
template <int pending> static void wait_copies() { emulation::end_copies(pending); }

#define EMULATED(name)                                                                          \
  extern "C" int emulated_##name(void **arguments, const unsigned *grid, const unsigned *group, \
                                 unsigned seed) {                                               \
    return emulation::launch(name, arguments, grid, group, seed);                               \
  }                                                                                             \
  extern "C" unsigned emulated_sizes_##name(unsigned *sizes) {                                  \
    return emulation::list_sizes(name, sizes);                                                  \
  }

#endif
