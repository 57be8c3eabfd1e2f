/* Tests the renderers: linear programs made by hand are rendered as C and for LLVM, compiled by
   gcc, clang and the LLVM module, for a baseline machine and for this one, run, and compared bit by
   bit with the interpreter; a tenth of them (with TENON_LONG all) as OpenCL C and CUDA C too, where
   there is a device (tests/cuda stands in for one). Also checks the source text, the assembly and
   that compilers give no warnings. */
#include "base/file.h"
#include "base/process.h"
#include "base/vec.h"
#include "codegen/codegen.h"
#include "compile/program_spec.h"
#include "device/cpu/c_compiler.h"
#include "device/cpu/elf_loader.h"
#include "device/cpu/isa_level.h"
#include "device/cpu/llvm_loader.h"
#include "device/cuda/cuda_backend.h"
#include "device/opencl/opencl_backend.h"
#include "ir/core/binder.h"
#include "ir/core/scalar_eval.h"
#include "ir/core/tensor_rows.h"
#include "ir/core/topo_sort.h"
#include "ir/index/index_arithmetic.h"
#include "ir/interp/interp.h"
#include "render/c/dialect.h"
#include "render/c/render_c.h"
#include "render/llvm/render_llvm.h"
#include "support/driver_kernels.h"
#include "support/fold_reduction.h"
#include "support/graph_body.h"
#include "support/temporary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PARAMS = 5, MOST_VARS = 3, MOST_CODES = 9 };

/** Languages that a device's driver runs, of which a device may be absent. */
enum { DRIVERS = 2, DRIVER_SHARE = 10 };
static const struct {
  const char *name;
  const c_dialect *dialect;
  const tn_backend *backend;
} drivers[DRIVERS] = {{"OpenCL C", &c_opencl, &opencl_backend}, {"CUDA C", &c_cuda, &cuda_backend}};
static driver_kernels on_driver[DRIVERS]; /* without a device: absent */

/** A kernel: its program, and memory of its params by slot. */
typedef struct kernel {
  const char *entry;
  node_list list;
  interp_array params[MOST_PARAMS];
  size_t n_params;
  interp_var vars[MOST_VARS];
  size_t n_vars;
  bool is_on[DRIVERS]; /* compiled for it */
} kernel;

typedef struct test {
  diag d;
  ir *g;
  arena *a;
  VEC(kernel *) kernels;
  kernel *k; /* the kernel under construction */
  cc cc[2];
  size_t compilers;
  const llvm_module *llvm; /* NULL: not there */
  uint64_t random;
  void (*body)(struct test *t);
} test;

static void find_compilers(test *t) {
  static const char *const names[] = {"gcc", "clang"};
  const char *sanitizers = getenv("TENON_SANITIZE");
  size_t most = sanitizers && *sanitizers ? 1 : 2; /* one suffices under a sanitizer */
  for (size_t i = 0; i < 2 && t->compilers < most; i++) {
    if (cc_find(&t->cc[t->compilers], names[i], t->a, &t->d) == TN_OK)
      t->compilers++;
    else
      print_message("without %s: %s\n", names[i], t->d.text);
  }
  assert_true(t->compilers > 0);
  static bool is_told;
  if (llvm_module_open(&t->llvm, &t->d) && !is_told) {
    print_message("without LLVM: %s\n", t->d.text);
    is_told = true;
  }
}

static void call_body(void *arg) {
  test *t = arg;
  t->a = ir_arena(t->g);
  find_compilers(t);
  t->body(t);
}

static void run_body(void (*body)(test *t)) {
  test t = {.body = body, .random = 88172645463325252u};
  run_in_graph(&t.g, false, &t.d, call_body, &t, 0);
}

#define TEST(name) BODY_TEST(name, run_body(name##_body))

/* Making programs. */

static kernel *begin(test *t, const char *name) {
  t->k = arena_calloc(t->a, 1, sizeof *t->k);
  t->k->entry = arena_printf(t->a, "k%zu_%s", t->kernels.n, name);
  vec_push(t->a, &t->kernels, t->k);
  return t->k;
}

static const node *add(test *t, const node *n) {
  for (size_t i = 0; i < t->k->list.n; i++)
    if (t->k->list.at[i] == n) return n;
  vec_push(t->a, &t->k->list, n);
  return n;
}

static const node *make(test *t, op o, dtype type, unsigned lanes, const node *const src[],
                        size_t n_src, const int64_t ints[], size_t n_int) {
  return ir_make(t->g, &(node_spec){.op = o,
                                    .dtype = type,
                                    .lanes = (uint16_t)lanes,
                                    .src = src,
                                    .n_src = n_src,
                                    .ints = ints,
                                    .n_int = n_int});
}

static const node *number(test *t, int64_t v) { return ir_const_int(t->g, DT_I64, v); }

/** Adds a param of `n` elements, all 0. */
static const node *param(test *t, dtype type, int64_t n) {
  int64_t slot = (int64_t)t->k->n_params++;
  size_t bytes = (size_t)n * dtype_bytes(type);
  t->k->params[slot] = (interp_array){.dtype = type,
                                      .rank = 1,
                                      .dims = {n},
                                      .data = arena_calloc(t->a, 1, bytes + 1),
                                      .bytes = bytes};
  const node *size = number(t, n);
  return ir_node(t->g, OP_PARAM, type, &size, 1, &slot, 1);
}

static interp_array *array(test *t, const node *p) { return &t->k->params[p->ints[0]]; }

static uint64_t next_random(test *t) {
  t->random ^= t->random << 13;
  t->random ^= t->random >> 7;
  return t->random ^= t->random << 17;
}

static const node *op1(test *t, op o, const node *a) { return add(t, ir_op1(t->g, o, a)); }
static const node *op2(test *t, op o, const node *a, const node *b) {
  return add(t, ir_op2(t->g, o, a, b));
}
static const node *op3(test *t, op o, const node *a, const node *b, const node *c) {
  return add(t, ir_op3(t->g, o, a, b, c));
}
static const node *cast(test *t, dtype to, const node *a) { return add(t, ir_cast(t->g, a, to)); }
static const node *bitcast(test *t, dtype to, const node *a) {
  return add(t, ir_bitcast(t->g, a, to));
}

static const node *load(test *t, const node *from, unsigned lanes, const node *at) {
  const node *src[] = {from, at};
  return add(t, make(t, OP_LOAD, from->dtype, lanes, src, 2, NULL, 0));
}

static const node *store(test *t, const node *to, const node *at, const node *v) {
  const node *src[] = {to, at, v};
  return add(t, make(t, OP_STORE, DT_VOID, 1, src, 3, NULL, 0));
}

static const node *after(test *t, const node *storage, const node *effect) {
  const node *src[] = {storage, effect};
  return make(t, OP_AFTER, storage->dtype, storage->lanes, src, 2, NULL, 0);
}

static const node *open_as(test *t, dtype type, const node *extent) {
  int64_t ints[] = {ir_fresh_id(t->g), KIND_LOOP, 0, 0};
  return add(t, make(t, OP_RANGE, type, 1, &extent, 1, ints, 4));
}

static const node *open_range(test *t, int64_t n) { return open_as(t, DT_I64, number(t, n)); }

static void end_range(test *t, const node *range, const node *effect) {
  const node *src[] = {range, effect};
  add(t, make(t, OP_END, DT_VOID, 1, src, 2, NULL, 0));
}

static const node *alloc(test *t, dtype type, unsigned lanes, int64_t n, int64_t space) {
  const node *count = number(t, n);
  int64_t ints[] = {ir_fresh_id(t->g), space};
  return add(t, make(t, OP_ALLOC, type, lanes, &count, 1, ints, 2));
}

static const node *splat(test *t, unsigned lanes, const node *x) {
  return lanes == 1 ? x : add(t, make(t, OP_SPLAT, x->dtype, lanes, &x, 1, NULL, 0));
}

static const node *extract(test *t, const node *x, int64_t lane) {
  return add(t, make(t, OP_EXTRACT, x->dtype, 1, &x, 1, &lane, 1));
}

static const node *vectorize(test *t, unsigned lanes, const node *const x[]) {
  return add(t, make(t, OP_VECTORIZE, x[0]->dtype, lanes, x, lanes, NULL, 0));
}

static const node *gated(test *t, const node *gate, const node *address) {
  const node *nowhere = make(t, OP_INVALID, address->dtype, 1, NULL, 0, NULL, 0);
  return op3(t, OP_WHERE, gate, address, nowhere);
}

static const node *named(test *t, op o, dtype type, const char *name, const node *size,
                         const int64_t ints[], size_t n_int) {
  return ir_make(t->g, &(node_spec){.op = o,
                                    .dtype = type,
                                    .src = &size,
                                    .n_src = size != NULL,
                                    .ints = ints,
                                    .n_int = n_int,
                                    .text = name,
                                    .n_text = strlen(name)});
}

static const node *variable(test *t, dtype type, const char *name, int64_t most, int64_t value) {
  int64_t ints[] = {0, most};
  t->k->vars[t->k->n_vars++] = (interp_var){name, value};
  return named(t, OP_VAR, type, name, NULL, ints, 2);
}

static const node *linear_of(test *t, const kernel *k) {
  return make(t, OP_LINEAR, DT_VOID, 1, k->list.at, k->list.n, NULL, 0);
}

/* Data. */

static const double float_edges[] = {0.0,      -0.0,   1.0,     -1.0,  0.5,   -0.5,  1.5,  2.5,
                                     -2.5,     1e-40,  -1e-40,  3e38,  -3e38, 1e300, 0.1,  7.25,
                                     INFINITY, 1e-310, 8388609, -1e10, 3.999, -0.75, -7.0, 1e7};

static uint64_t any_float(test *t, dtype type) {
  enum { EDGES = sizeof float_edges / sizeof *float_edges };
  uint64_t r = next_random(t);
  switch (r >> 32 & 7) {
  case 0: return scalar_from_double(type, NAN);
  case 1:
  case 2: return scalar_from_double(type, float_edges[r % EDGES]);
  case 3: return scalar_cast(type, DT_F64, next_random(t)); /* any bit pattern */
  default: return scalar_from_double(type, (double)(r >> 11) * 0x1p-53 * 64 - 32);
  }
}

static uint64_t any_bits(test *t, dtype type) {
  if (dtype_is_float(type)) return any_float(t, type);
  if (type == DT_BOOL) return next_random(t) & 1;
  uint64_t r = next_random(t);
  switch (r >> 32 & 7) {
  case 0: return scalar_cast(type, DT_I64, (uint64_t)dtype_min(type) + r % 3);
  case 1: return scalar_cast(type, DT_I64, (uint64_t)dtype_max(type) - r % 3);
  case 2:
  case 3: return scalar_cast(type, DT_I64, r % 7 - 3);
  default: return scalar_cast(type, DT_I64, next_random(t));
  }
}

static void set(interp_array *a, size_t i, uint64_t bits) {
  scalar_store(a->dtype, (char *)a->data + i * dtype_bytes(a->dtype), bits);
}

static uint64_t get(const interp_array *a, size_t i) {
  return scalar_load(a->dtype, (const char *)a->data + i * dtype_bytes(a->dtype));
}

static void fill_any(test *t, const node *p) {
  interp_array *a = array(t, p);
  for (int64_t i = 0; i < a->dims[0]; i++) set(a, (size_t)i, any_bits(t, a->dtype));
}

/** Fills a param with numbers least … most. */
static void fill_between(test *t, const node *p, int least, int most) {
  interp_array *a = array(t, p);
  uint64_t n = (uint64_t)(most - least + 1);
  for (int64_t i = 0; i < a->dims[0]; i++) {
    double v = least + (double)(next_random(t) % n);
    if (dtype_is_float(a->dtype) && v > least && v < most) v += 0.75;
    set(a, (size_t)i, scalar_from_double(a->dtype, v));
    if (!dtype_is_float(a->dtype)) set(a, (size_t)i, (uint64_t)(int64_t)v);
  }
}

/* Running. */

/** A launch's arguments: copies of the kernel's data. */
typedef struct launch {
  void *bufs[MOST_PARAMS + 1];
  int64_t vals[MOST_VARS + 2];
} launch;

static int64_t value_of(const kernel *k, const char *name, int64_t id, int64_t count) {
  if (!strcmp(name, "core_id")) return id;
  if (!strcmp(name, "core_count")) return count;
  for (size_t i = 0; i < k->n_vars; i++)
    if (!strcmp(k->vars[i].name, name)) return k->vars[i].value;
  fail_msg("no value for %s", name);
  return 0;
}

static bool same_element(dtype type, uint64_t a, uint64_t b) {
  if (a == b) return true;
  return dtype_is_float(type) && isnan(scalar_to_double(type, a)) &&
         isnan(scalar_to_double(type, b));
}

static void compare(const kernel *k, size_t slot, const void *got, const char *how) {
  const interp_array *want = &k->params[slot];
  interp_array have = *want;
  have.data = (void *)got;
  for (size_t i = 0; i < (size_t)want->dims[0]; i++)
    if (!same_element(want->dtype, get(want, i), get(&have, i)))
      fail_msg("%s, %s: element %zu of param %zu (%s) is %llx (%g), not %llx (%g)", k->entry, how,
               i, slot, dtype_name(want->dtype), (unsigned long long)get(&have, i),
               scalar_to_double(want->dtype, get(&have, i)), (unsigned long long)get(want, i),
               scalar_to_double(want->dtype, get(want, i)));
}

typedef void entry_function(void *const *bufs, const int64_t *vals);

typedef struct code {
  const char *how;
  elf_image *elf; /* NULL: run by a driver, if the kernel is there */
  size_t driver;
} code;

/** Derives the arguments of a program's launch. */
static tn_program_spec spec_of(test *t, const node *linear) {
  tn_program_spec s;
  program_spec_derive(t->g, linear, &s);
  return s;
}

static void render(test *t, const kernel *k, const char *entry, str *out) {
  const node *linear = linear_of(t, k);
  tn_program_spec spec = spec_of(t, linear);
  spec.entry = entry;
  render_c(linear, &spec, &c_gnu, out);
}

static void run_by_driver(test *t, const kernel *k, size_t driver, void *data[], int64_t workers) {
  tn_program_spec spec = spec_of(t, linear_of(t, k));
  spec.entry = k->entry;
  void *by_number[MOST_PARAMS];
  size_t bytes[MOST_PARAMS];
  int64_t values[MOST_VARS + 2];
  for (size_t i = 0; i < spec.n_globals; i++) {
    by_number[i] = data[spec.globals[i]];
    bytes[i] = k->params[spec.globals[i]].bytes;
  }
  for (size_t i = 0; i < spec.n_values; i++)
    values[i] = value_of(k, spec.value_names[i], 0, workers);
  if (driver_kernels_run(&on_driver[driver], &spec, by_number, bytes, values, workers, 1))
    fail_msg("%s: %s", k->entry, on_driver[driver].diag.text);
}

static void run_compiled(test *t, const kernel *k, const code *c, void *data[], int64_t workers) {
  if (!c->elf) {
    run_by_driver(t, k, c->driver, data, workers);
    return;
  }
  tn_program_spec spec = spec_of(t, linear_of(t, k));
  launch l = {{0}, {0}};
  for (size_t i = 0; i < spec.n_globals; i++) l.bufs[i] = data[spec.globals[i]];
  entry_function *f = (entry_function *)(uintptr_t)elf_symbol(c->elf, k->entry);
  assert_non_null(f);
  l.bufs[spec.n_globals] = arena_alloc(t->a, spec.scratch * (size_t)workers);
  for (int64_t id = 0; id < workers; id++) {
    for (size_t i = 0; i < spec.n_values; i++)
      l.vals[i] = value_of(k, spec.value_names[i], id, workers);
    f(l.bufs, l.vals);
  }
}

/** Runs a kernel as machine code and in the interpreter, from the same data. */
static void check_kernel(test *t, kernel *k, const code codes[], size_t n, int64_t workers) {
  void *data[MOST_CODES][MOST_PARAMS] = {{0}};
  for (size_t c = 0; c < n; c++) {
    if (!codes[c].elf && !k->is_on[codes[c].driver]) continue;
    for (size_t i = 0; i < k->n_params; i++)
      data[c][i] = arena_copy(t->a, k->params[i].data, k->params[i].bytes + 1);
    run_compiled(t, k, &codes[c], data[c], workers);
  }
  interp_env e = {
      .params = k->params, .n_params = k->n_params, .vars = k->vars, .n_vars = k->n_vars};
  for (int64_t id = 0; id < workers; id++)
    if (interp_linear(&e, linear_of(t, k), id, workers, &mem_system, &t->d) != TN_OK) {
      diag_prefix(&t->d, "%s", k->entry);
      diag_rethrow(&t->d);
    }
  for (size_t c = 0; c < n; c++)
    for (size_t i = 0; i < k->n_params && data[c][i]; i++) compare(k, i, data[c][i], codes[c].how);
}

static const char *source_of(test *t) {
  str s = str_new(t->a);
  render_c_prelude(&c_gnu, &s);
  for (size_t i = 0; i < t->kernels.n; i++)
    render(t, t->kernels.at[i], t->kernels.at[i]->entry, &s);
  return str_text(&s);
}

/** Fails if a compiler warns about the source, with all warnings on. */
static void check_warnings(test *t, const cc *c, const char *source) {
  char *folder = temporary_folder(t->a);
  process_result r;
  assert_non_null(folder);
  const char *in = arena_printf(t->a, "%s/k.c", folder),
             *out = arena_printf(t->a, "%s/k.o", folder);
  assert_int_equal(file_write(in, source, strlen(source), &t->d), TN_OK);
  const char *const argv[] = {c->command[0],   "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror",
                              "-march=native", "-c",         in,    "-o",    out,       NULL};
  process_request q = {.argv = argv, .limit_ns = INT64_C(120000000000)};
  tn_status s = process_run(&q, t->a, &r, &t->d);
  unlink(in);
  unlink(out);
  rmdir(folder);
  assert_int_equal(s, TN_OK);
  if (r.exit_code) fail_msg("%s: %.3000s", c->version, r.output);
}

static elf_image *compiled(test *t, const cc *c, const char *source, const char *const flags[]) {
  cc_object o;
  elf_image *elf;
  if (cc_compile(c, source, strlen(source), flags, t->a, &o, &t->d) != TN_OK) diag_rethrow(&t->d);
  if (elf_load(&elf, o.data, o.bytes, &mem_system, &t->d) != TN_OK) diag_rethrow(&t->d);
  return elf;
}

/** A compiler with its flags. */
typedef struct variant {
  const char *name;
  const char *flags[5];
} variant;

static bool has_avx2(void) {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

/** Returns the i-th way to compile: for this machine, and either with checked scalar arithmetic
    (sanitizers do not cover vectors) or for the baseline. */
static variant variant_of(const cc *c, size_t i, bool scalars) {
  if (i == 0) return (variant){"this machine", {"-march=native", NULL}};
  if (scalars)
    return (variant){"overflow checked",
                     {"-march=native", "-fsanitize=signed-integer-overflow,shift",
                      "-fsanitize-undefined-trap-on-error", NULL}};
  if (c->kind == CC_CLANG && has_avx2()) return (variant){"AVX2", {"-mavx2", "-mfma", NULL}};
  return (variant){"least machine", {NULL}};
}

/* LLVM. */

static void add_object(void *user, const void *data, size_t bytes) {
  str_add_bytes(user, data, bytes);
}

/** The text of all kernels. */
static const char *llvm_source(test *t) {
  str s = str_new(t->a);
  render_llvm_prelude(&s);
  for (size_t i = 0; i < t->kernels.n; i++) {
    const kernel *k = t->kernels.at[i];
    const node *linear = linear_of(t, k);
    tn_program_spec spec = spec_of(t, linear);
    spec.entry = k->entry;
    render_llvm(linear, &spec, 0, 0, &s);
  }
  return str_text(&s);
}

static elf_image *compiled_by_llvm(test *t, const char *source, const isa_level *level) {
  str object = str_new(t->a);
  llvm_job job = {.text = source,
                  .bytes = strlen(source),
                  .cpu = level->llvm_cpu,
                  .features = "",
                  .vector_bytes = level->vector_bytes,
                  .add = add_object,
                  .user = &object};
  elf_image *elf;
  if (t->llvm->compile(&job) != LLVM_COMPILED) fail_msg("%s", job.message);
  if (elf_load(&elf, object.at, object.n, &mem_system, &t->d) != TN_OK) diag_rethrow(&t->d);
  return elf;
}

/** Compiles all kernels for the levels that this machine has; returns their number. */
static size_t compile_by_llvm(test *t, code codes[]) {
  static const char *const names[] = {"x86-64", "x86-64-v3", NULL};
  size_t n = 0;
  const isa_level *last = NULL;
  if (!t->llvm) return 0;
  const char *source = llvm_source(t);
  for (size_t i = 0; i < 3; i++) {
    if (names[i] && !isa_level_by_name(names[i])) continue; /* another architecture */
    isa_target target;
    assert_int_equal(isa_target_find(names[i], &target, NULL), TN_OK);
    const isa_level *level = target.level;
    if (level == last) continue;
    codes[n++] = (code){.how = arena_printf(t->a, "LLVM, %s", level->name),
                        .elf = compiled_by_llvm(t, source, level)};
    last = level;
  }
  return n;
}

/* Drivers. */

/** The source of a kernel in a driver's language. */
typedef struct driver_source {
  test *t;
  const kernel *k;
  const c_dialect *dialect;
  tn_program_spec spec;
} driver_source;

static void render_for_driver(void *arg) {
  driver_source *s = arg;
  const node *linear = linear_of(s->t, s->k);
  str text = str_new(s->t->a);
  s->spec = spec_of(s->t, linear);
  s->spec.entry = s->spec.name = s->k->entry;
  render_c(linear, &s->spec, s->dialect, &text);
  s->spec.source = str_text(&text);
  s->spec.source_bytes = text.n;
}

/** Compiles some of the kernels; false: there is no device, or no kernel that it can run. Vectors
    have at most 16 lanes in OpenCL C and one in CUDA C, and products of groups of small elements
   are lacking. */
static bool compile_by_driver(test *t, size_t driver) {
  static size_t number[DRIVERS];
  driver_kernels *on = &on_driver[driver];
  size_t share = getenv("TENON_LONG") ? 1 : DRIVER_SHARE, n = 0;
  const tn_program_spec **specs = arena_alloc(t->a, (t->kernels.n + 1) * sizeof *specs);
  for (size_t i = 0; i < t->kernels.n && on->device; i++) {
    kernel *k = t->kernels.at[i];
    driver_source *s = arena_calloc(t->a, 1, sizeof *s);
    *s = (driver_source){.t = t, .k = k, .dialect = drivers[driver].dialect};
    if (number[driver]++ % share) continue;
    tn_status status = diag_catch(&t->d, render_for_driver, s);
    if (status && status != TN_ERR_UNSUPPORTED) diag_rethrow(&t->d);
    k->is_on[driver] = !status;
    if (!status) specs[n++] = &s->spec;
  }
  if (n && driver_kernels_compile(on, NULL, specs, n)) fail_msg("%s", on->diag.text);
  return n > 0;
}

/** Compiles and runs all kernels made so far; `scalars`: their integers are mostly scalars. */
static void check_with(test *t, bool scalars, int64_t workers) {
  const char *source = source_of(t);
  code codes[MOST_CODES];
  size_t n = 0;
  for (size_t c = 0; c < t->compilers; c++) {
    check_warnings(t, &t->cc[c], source);
    for (size_t i = 0; i < 2; i++) {
      variant v = variant_of(&t->cc[c], i, scalars);
      codes[n++] = (code){.how = arena_printf(t->a, "%s, %s", t->cc[c].version, v.name),
                          .elf = compiled(t, &t->cc[c], source, v.flags)};
    }
  }
  n += compile_by_llvm(t, codes + n);
  for (size_t i = 0; i < DRIVERS; i++)
    if (compile_by_driver(t, i)) codes[n++] = (code){.how = drivers[i].name, .driver = i};
  for (size_t i = 0; i < t->kernels.n; i++) {
    t->k = t->kernels.at[i];
    check_kernel(t, t->k, codes, n, workers);
  }
  for (size_t i = 0; i < n && codes[i].elf; i++) elf_free(codes[i].elf);
}

static void check_scalars(test *t) { check_with(t, true, 1); }
static void check(test *t) { check_with(t, false, 1); }

/* Elementwise ops: out[i] = op(in0[i], …) for every type and number of lanes. */

enum { N = 192 };

static const dtype types[] = {DT_BOOL, DT_I8,  DT_I16, DT_I32, DT_I64, DT_U8,
                              DT_U16,  DT_U32, DT_U64, DT_F32, DT_F64};
enum { TYPES = sizeof types / sizeof *types };
/** Opens a loop over all elements; `at` is the address of the first of `lanes`. */
static const node *each(test *t, unsigned lanes, const node **at) {
  const node *i = open_range(t, N / lanes);
  *at = lanes == 1 ? i : op2(t, OP_MUL, i, number(t, lanes));
  return i;
}

static void fill_for(test *t, op o, const node *p, size_t i) {
  bool second = i == 1, divides = o == OP_CDIV || o == OP_CMOD;
  if (second && (o == OP_SHL || o == OP_SHR))
    fill_between(t, p, 0, dtype_bits(array(t, p)->dtype) - 1);
  else if (second && divides)
    fill_between(t, p, 1, 100);
  else
    fill_any(t, p);
}

static void elementwise(test *t, op o, dtype type, unsigned lanes) {
  size_t n = op_facts_of(o)->most;
  bool compares = op_facts_of(o)->type == TYPE_COMPARE;
  const node *in[3], *x[3], *at;
  begin(t, arena_printf(t->a, "%s_%s_%u", op_name(o), dtype_name(type), lanes));
  const node *out = param(t, compares ? DT_BOOL : type, N);
  for (size_t i = 0; i < n; i++) {
    in[i] = param(t, o == OP_WHERE && i == 0 ? DT_BOOL : type, N);
    fill_for(t, o, in[i], i);
  }
  const node *i = each(t, lanes, &at);
  for (size_t k = 0; k < n; k++) x[k] = load(t, in[k], lanes, at);
  const node *v = n == 1   ? op1(t, o, x[0])
                  : n == 2 ? op2(t, o, x[0], x[1])
                           : op3(t, o, x[0], x[1], x[2]);
  end_range(t, i, store(t, out, at, v));
}

/** True for ops in the renderer's table, which the target does not lack. */
static bool is_tabled(op o) {
  rule_target lacking = {0};
  render_c_unsupported_ops(&c_gnu, &lacking);
  bool partial = o == OP_SHL || o == OP_SHR;
  bool other = o == OP_CAST || o == OP_BITCAST || o == OP_VECTORIZE || o == OP_EXTRACT ||
               o == OP_SPLAT || o == OP_AFFINE;
  bool scalar = op_is_elementwise(o) && !other && !tensor_tile_of(o);
  return scalar && (partial || !rule_target_lacks_op(&lacking, o));
}

static void make_elementwise(test *t, unsigned lanes) {
  size_t before = t->kernels.n;
  for (op o = 0; o < OP_LIMIT; o++)
    for (size_t k = 0; k < TYPES && is_tabled(o); k++)
      if (op_takes(o, types[k])) elementwise(t, o, types[k], lanes);
  assert_true(t->kernels.n - before > 150);
}

TEST(test_elementwise_scalars) {
  make_elementwise(t, 1);
  check_scalars(t);
}

/** The widest type decides the number of lanes, so narrow types have few. */
TEST(test_elementwise_4_lanes) {
  make_elementwise(t, 4);
  check(t);
}

TEST(test_elementwise_16_lanes) {
  make_elementwise(t, 16);
  check(t);
}

/** LLVM's shifts by the width or more are poison, which may spread to what does not use them:
   counts that vary are reduced. */
TEST(test_text_of_shifts) {
  static const dtype shifted[] = {DT_I32, DT_U64};
  static const char *const reduced[] = {"and i32 ", "and i64 "};
  for (size_t k = 0; k < 2; k++) elementwise(t, OP_SHL, shifted[k], 1);
  const char *text = llvm_source(t);
  for (size_t k = 0; k < 2; k++) {
    const char *at = strstr(text, reduced[k]), *count = at ? strchr(at, ',') : NULL;
    assert_non_null(count);
    assert_int_equal(atoi(count + 1), dtype_bits(shifted[k]) - 1);
  }
}

/** Computes out[i] = op(c, in[i]) and op(in[i], c): compilers know whether c is NaN or a zero. */
static void with_constant(test *t, op o, dtype type, unsigned lanes, double c, bool first) {
  const node *at;
  begin(t, arena_printf(t->a, "%s_%s_%u_%zu", op_name(o), dtype_name(type), lanes, t->kernels.n));
  const node *out = param(t, type, N), *in = param(t, type, N), *i = each(t, lanes, &at);
  fill_any(t, in);
  const node *x = load(t, in, lanes, at), *k = splat(t, lanes, add(t, ir_const(t->g, type, c)));
  const node *v = first ? op2(t, o, k, x) : op2(t, o, x, k);
  end_range(t, i, store(t, out, at, v));
}

/** Ops with instructions on some machines, at all their sizes. */
TEST(test_instructions) {
  static const op ops[] = {OP_FMA, OP_MAX, OP_MIN};
  static const double constants[] = {0, -0.0, 1.5, INFINITY, NAN};
  for (unsigned lanes = 2; lanes <= 16; lanes *= 2)
    for (size_t k = 0; k < 2; k++) {
      dtype type = k ? DT_F64 : DT_F32;
      for (size_t o = 0; o < 3; o++) elementwise(t, ops[o], type, lanes);
      for (size_t c = 0; c < sizeof constants / sizeof *constants; c++)
        for (size_t o = 1; o < 3; o++) {
          with_constant(t, ops[o], type, lanes, constants[c], true);
          with_constant(t, ops[o], type, lanes, constants[c], false);
        }
    }
  check(t);
}

TEST(test_lacks) {
  static const op lacking[] = {OP_EXP, OP_POW, OP_ERF, OP_FLOORDIV, OP_MOD, OP_SHL, OP_CAST};
  static const op there[] = {OP_ADD, OP_FMA,  OP_SQRT,    OP_FLOOR,
                             OP_MAX, OP_CDIV, OP_BITCAST, OP_SPLAT};
  rule_target r = {0};
  render_c_unsupported_ops(&c_gnu, &r);
  for (size_t i = 0; i < sizeof lacking / sizeof *lacking; i++)
    assert_true(rule_target_lacks_op(&r, lacking[i]));
  for (size_t i = 0; i < sizeof there / sizeof *there; i++)
    assert_false(rule_target_lacks_op(&r, there[i]));
  (void)t;
}

/* Conversions. */

static void conversion(test *t, op o, dtype from, dtype to, unsigned lanes) {
  const node *at;
  begin(t, arena_printf(t->a, "%s_%s_%s_%u", op_name(o), dtype_name(from), dtype_name(to), lanes));
  const node *out = param(t, to, N), *in = param(t, from, N), *i = each(t, lanes, &at);
  if (o == OP_CAST && dtype_is_float(from) && dtype_is_int(to))
    fill_between(t, in, dtype_is_signed(to) ? -100 : 0, 100);
  else
    fill_any(t, in);
  const node *x = load(t, in, lanes, at);
  end_range(t, i, store(t, out, at, o == OP_CAST ? cast(t, to, x) : bitcast(t, to, x)));
}

static void make_casts(test *t, unsigned lanes) {
  for (size_t i = 0; i < TYPES; i++)
    for (size_t j = 0; j < TYPES; j++)
      if (i != j) conversion(t, OP_CAST, types[i], types[j], lanes);
}

TEST(test_casts_of_scalars) {
  make_casts(t, 1);
  check_scalars(t);
}

TEST(test_casts_of_vectors) {
  make_casts(t, 8);
  check(t);
}

TEST(test_bitcasts) {
  static const dtype all[] = {DT_BOOL, DT_I8,  DT_U8,  DT_I16, DT_U16, DT_F16, DT_BF16,
                              DT_I32,  DT_U32, DT_F32, DT_I64, DT_U64, DT_F64};
  enum { ALL = sizeof all / sizeof *all };
  for (unsigned lanes = 1; lanes <= 16; lanes *= 4)
    for (size_t i = 0; i < ALL; i++)
      for (size_t j = 0; j < ALL; j++)
        if (i != j && dtype_bytes(all[i]) == dtype_bytes(all[j]))
          conversion(t, OP_BITCAST, all[i], all[j], lanes);
  check(t);
}

/* 16-bit floats are moved and selected as bit patterns. */
TEST(test_halves) {
  for (unsigned lanes = 1; lanes <= 8; lanes *= 8) {
    const node *at;
    begin(t, arena_printf(t->a, "half_%u", lanes));
    const node *out = param(t, DT_F16, N), *a = param(t, DT_F16, N), *c = param(t, DT_BOOL, N);
    fill_any(t, a);
    fill_any(t, c);
    const node *i = each(t, lanes, &at), *one = ir_const(t->g, DT_F16, 1);
    const node *x = load(t, a, lanes, at), *mask = load(t, c, lanes, at);
    end_range(t, i, store(t, out, at, op3(t, OP_WHERE, mask, x, splat(t, lanes, one))));
  }
  check(t);
}

/* Constants keep their exact bits. */
TEST(test_constants) {
  static const uint64_t f32[] = {0x00000000, 0x80000000, 0x00000001, 0x807fffff, 0x7f800000,
                                 0xff800000, 0x7fc00000, 0xffc12345, 0x3f800000, 0x7f7fffff,
                                 0x4b800001, 0x49742400, 0xc9742410, 0x3dcccccd};
  static const uint64_t f64[] = {0x8000000000000000, 0x1,
                                 0x800fffffffffffff, 0x7ff0000000000000,
                                 0xfff8000000000123, 0x3fb999999999999a,
                                 0x7fefffffffffffff, 0x3ff0000000000001,
                                 0x41cdcd6500000000};
  for (size_t k = 0; k < TYPES; k++)
    for (unsigned lanes = 1; lanes <= 4; lanes *= 4) {
      dtype type = types[k];
      const node *written = NULL;
      begin(t, arena_printf(t->a, "constants_%s_%u", dtype_name(type), lanes));
      const node *out = param(t, type, 16 * 4);
      for (unsigned i = 0; i < 16; i++) {
        uint64_t bits = any_bits(t, type);
        if (type == DT_F32 && i < sizeof f32 / sizeof *f32) bits = f32[i];
        if (type == DT_F64 && i < sizeof f64 / sizeof *f64) bits = f64[i];
        if (type == DT_I64 && i == 0) bits = (uint64_t)INT64_MIN;
        if (type == DT_I32 && i == 0) bits = (uint64_t)(int64_t)INT32_MIN;
        const node *c = ir_const_bits(t->g, type, bits);
        written = store(t, out, number(t, 4 * i), splat(t, lanes, c));
      }
      assert_non_null(written);
    }
  check(t);
}

/** Vector constants with different lanes. */
TEST(test_vector_constants) {
  static const dtype of[] = {DT_F32, DT_I64, DT_U8};
  for (size_t k = 0; k < 3; k++) {
    const node *at;
    begin(t, arena_printf(t->a, "vector_constant_%s", dtype_name(of[k])));
    const node *out = param(t, of[k], N), *in = param(t, of[k], N), *c = param(t, DT_BOOL, N);
    fill_any(t, in);
    fill_any(t, c);
    int64_t seven = (int64_t)scalar_from_double(of[k], 7), yes = 1;
    if (of[k] != DT_F32) seven = 7;
    const node *sevens = make(t, OP_CONST, of[k], 8, NULL, 0, &seven, 1);
    const node *all = make(t, OP_CONST, DT_BOOL, 8, NULL, 0, &yes, 1);
    const node *i = each(t, 8, &at), *x = load(t, in, 8, at), *m = load(t, c, 8, at);
    const node *less = op2(t, OP_LT, x, sevens), *either = op2(t, OP_XOR, less, all);
    store(t, c, at, op2(t, OP_NE, op2(t, OP_AND, m, all), either));
    const node *v = op3(t, OP_WHERE, either, x, op3(t, OP_WHERE, all, sevens, x));
    end_range(t, i, store(t, out, at, v));
  }
  check(t);
}

/* Loops and registers. */

/** Builds out[i, row, column] = Σ a[row, k]·b[k, column] for `times` tiles of `rows` × 2
    vectors. */
static void matmul_tiles(test *t, dtype type, unsigned lanes, int64_t rows, int64_t depth,
                         int64_t times) {
  const node *acc[32], *first[32], *sum[32] = {NULL}, *zero = ir_const(t->g, type, 0);
  int64_t columns = 2 * lanes;
  begin(t, arena_printf(t->a, "tile_%s_%u", dtype_name(type), lanes));
  const node *out = param(t, type, times * rows * columns), *a = param(t, type, rows * depth),
             *b = param(t, type, depth * columns), *nil = number(t, 0);
  fill_between(t, a, -9, 9);
  fill_between(t, b, -9, 9);
  const node *i_range = open_range(t, times), *stored = NULL;
  const node *tile = op2(t, OP_MUL, i_range, number(t, rows * columns));
  for (int64_t i = 0; i < 2 * rows; i++) {
    acc[i] = alloc(t, type, lanes, 1, 0);
    first[i] = store(t, acc[i], nil, splat(t, lanes, zero));
  }
  const node *k = open_range(t, depth), *at = op2(t, OP_MUL, k, number(t, columns));
  const node *right[2] = {load(t, b, lanes, at),
                          load(t, b, lanes, op2(t, OP_ADD, at, number(t, lanes)))};
  for (int64_t r = 0; r < rows; r++) {
    const node *left_at = op2(t, OP_ADD, op2(t, OP_MUL, k, number(t, rows)), number(t, r));
    const node *left = splat(t, lanes, load(t, a, 1, left_at));
    for (int64_t j = 0; j < 2; j++) {
      int64_t i = 2 * r + j;
      const node *old = load(t, after(t, acc[i], first[i]), lanes, nil);
      sum[i] = store(t, acc[i], nil, op3(t, OP_FMA, left, right[j], old));
    }
  }
  end_range(t, k, sum[0]);
  for (int64_t i = 0; i < 2 * rows; i++) {
    const node *v = load(t, after(t, acc[i], sum[i]), lanes, nil);
    stored = store(t, out, op2(t, OP_ADD, tile, number(t, i * lanes)), v);
  }
  end_range(t, i_range, stored);
}

static void matmul_tile(test *t, dtype type, unsigned lanes, int64_t rows, int64_t depth) {
  matmul_tiles(t, type, lanes, rows, depth, 1);
}

TEST(test_accumulators) {
  matmul_tiles(t, DT_F32, 4, 6, 33, 3);
  matmul_tile(t, DT_F32, 8, 6, 33);
  matmul_tile(t, DT_F32, 16, 14, 5);
  matmul_tile(t, DT_F64, 4, 3, 7);
  matmul_tile(t, DT_F32, 1, 3, 7);
  check(t);
}

/** Returns the compiler's assembly of the tile's loop. */
static const char *assembly(test *t, const cc *c, const char *const machine[2]) {
  char *folder = temporary_folder(t->a);
  process_result r;
  file_map f;
  const char *source = source_of(t);
  assert_non_null(folder);
  const char *in = arena_printf(t->a, "%s/k.c", folder),
             *out = arena_printf(t->a, "%s/k.s", folder);
  assert_int_equal(file_write(in, source, strlen(source), &t->d), TN_OK);
  const char *const argv[] = {
      c->command[0],     "-std=gnu11", "-O2",      "-fPIC", "-S", "-w", "-ffp-contract=off",
      "-fno-math-errno", machine[0],   machine[1], in,      "-o", out,  NULL};
  process_request q = {.argv = argv, .limit_ns = INT64_C(60000000000)};
  assert_int_equal(process_run(&q, t->a, &r, &t->d), TN_OK);
  if (r.exit_code) fail_msg("%s", r.output);
  assert_int_equal(file_map_open(&f, out, &t->d), TN_OK);
  const char *text = arena_printf(t->a, "%.*s", (int)f.bytes, (const char *)f.data);
  file_map_close(&f);
  unlink(in);
  unlink(out);
  rmdir(folder);
  return text;
}

static size_t count(const char *text, const char *what) {
  size_t n = 0;
  for (; (text = strstr(text, what)); text++) n++;
  return n;
}

/** Counts the occurrences of a string in a kernel's text. */
static size_t times_in_text(test *t, const char *what) {
  str text = str_new(t->a);
  render(t, t->k, "k", &text);
  const char *body = strstr(str_text(&text), "static void k_body");
  assert_non_null(body);
  return count(body, what);
}

#ifdef __x86_64__
/* The tile's loop works on vector registers: one FMA per accumulator, no scalar ones, no
   accumulator in memory. */
TEST(test_assembly_of_the_tile) {
  static const struct {
    unsigned lanes;
    int64_t rows;
    const char *machine[2];
  } tiles[] = {{8, 6, {"-mavx2", "-mfma"}}, {16, 14, {"-mavx512f", "-mfma"}}};
  for (size_t i = 0; i < 2; i++) {
    t->kernels.n = 0;
    matmul_tile(t, DT_F32, tiles[i].lanes, tiles[i].rows, 512);
    for (size_t c = 0; c < t->compilers; c++) {
      const char *text = assembly(t, &t->cc[c], tiles[i].machine);
      size_t fmas = count(text, "vfmadd");
      assert_true(fmas % (size_t)(2 * tiles[i].rows) == 0 && fmas > 0);
      assert_int_equal(count(text, "vfmadd231ss") + count(text, "vfmadd213ss"), 0);
      assert_int_equal(count(text, "(%rsp)") + count(text, "(%rbp)"), 0);
      assert_int_equal(count(text, "\tcall"), 0);
    }
  }
}
#endif

/* Loads and constants that are used after a tile's loop stay after it, if it is inside another
   loop: hoisting them would take registers from the sums. */
TEST(test_text_of_tiles) {
  static const char after[] = "    }\n    __asm__ volatile(\"\" ::: \"memory\");\n";
  matmul_tiles(t, DT_F32, 8, 4, 16, 3);
  assert_int_equal(times_in_text(t, after), 1);
  assert_non_null(strstr(source_of(t), "\nMANY_SUMS static void k0_tile_f32_8_body("));
  assert_non_null(strstr(source_of(t), "\nMANY_SUMS void k0_tile_f32_8("));
  t->kernels.n = 0;
  matmul_tiles(t, DT_F32, 8, 3, 16, 3);
  assert_int_equal(times_in_text(t, after), 0);
  assert_null(strstr(source_of(t), "MANY_SUMS static"));
}

/* Both states step from the old values: loads must not move behind the stores. */
TEST(test_states_step_at_once) {
  begin(t, "fibonacci");
  const node *out = param(t, DT_U64, 40), *zero = number(t, 0),
             *one = ir_const_int(t->g, DT_U64, 1);
  const node *x = alloc(t, DT_U64, 1, 1, 0), *y = alloc(t, DT_U64, 1, 1, 0);
  const node *x0 = store(t, x, zero, one), *y0 = store(t, y, zero, one);
  const node *i = open_range(t, 40);
  const node *a = load(t, after(t, x, x0), 1, zero), *b = load(t, after(t, y, y0), 1, zero);
  const node *sum = op2(t, OP_ADD, a, b);
  store(t, out, i, a);
  store(t, after(t, x, sum), zero, b);
  end_range(t, i, store(t, y, zero, sum));
  begin(t, "swap"); /* both in one buffer */
  const node *p = param(t, DT_I32, 2);
  fill_any(t, p);
  const node *u = load(t, p, 1, number(t, 0)), *v = load(t, p, 1, number(t, 1));
  store(t, p, number(t, 0), v);
  store(t, p, number(t, 1), u);
  check_scalars(t);
}

/** A register of several elements, one of which is written and never read. */
TEST(test_register_elements) {
  begin(t, "elements");
  const node *in = param(t, DT_F32, 4), *out = param(t, DT_F32, 4);
  fill_any(t, in);
  const node *r = alloc(t, DT_F32, 1, 4, 0), *s = NULL;
  for (int64_t i = 0; i < 4; i++) s = store(t, r, number(t, i), load(t, in, 1, number(t, i)));
  for (int64_t i = 0; i < 3; i++)
    store(t, out, number(t, i), load(t, after(t, r, s), 1, number(t, (i + 1) % 3)));
  load(t, in, 1, number(t, 3)); /* unused */
  check(t);
}

/* Memory. */

/* Non-temporal stores write the same data, at any alignment. */

static const node *store_past(test *t, const node *to, const node *at, const node *v) {
  const node *src[] = {to, at, v};
  int64_t past = 1;
  return add(t, make(t, OP_STORE, DT_VOID, 1, src, 3, &past, 1));
}

/** Copies exactly 1024 elements to an address `shift` elements into a buffer. */
static void stream(test *t, dtype type, unsigned lanes, int64_t shift) {
  begin(t, arena_printf(t->a, "stream_%s_%u_%d", dtype_name(type), lanes, (int)shift));
  const node *in = param(t, type, 1024), *out = param(t, type, 1024 + 64);
  fill_any(t, in);
  fill_any(t, out);
  const node *i = open_range(t, 1024 / lanes), *at = op2(t, OP_MUL, i, number(t, lanes));
  const node *to = op2(t, OP_ADD, at, number(t, shift));
  end_range(t, i, store_past(t, out, to, load(t, in, lanes, at)));
}

TEST(test_streams) {
  static const dtype some[] = {DT_BOOL, DT_U8, DT_F16, DT_F32, DT_I64};
  static const int64_t shifts[] = {0, 1, 2, 4, 16, 32, 48};
  for (size_t i = 0; i < sizeof some / sizeof *some; i++)
    for (size_t k = 0; k < sizeof shifts / sizeof *shifts; k++)
      for (unsigned lanes = 4; lanes <= 64; lanes *= 2) stream(t, some[i], lanes, shifts[k]);
  check(t);
}

TEST(test_text_of_streams) {
  stream(t, DT_F32, 16, 0);
  assert_int_equal(times_in_text(t, "stream64(p1 + (x0 + 0L), (piece64)("), 1);
  assert_int_equal(times_in_text(t, "  }\n  STREAMED;\n}\n"), 1); /* after all loops */
  stream(t, DT_BOOL, 16, 0);
  assert_int_equal(times_in_text(t, "stream16("), 1);
  stream(t, DT_F32, 2, 0);
  assert_int_equal(times_in_text(t, "stream") + times_in_text(t, "STREAMED"), 0);
  stream(t, DT_F32, 64, 0);
  assert_int_equal(times_in_text(t, "stream") + times_in_text(t, "STREAMED"), 0);
}

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
TEST(test_assembly_of_streams) {
  static const struct {
    unsigned lanes;
    const char *machine[2], *wanted;
  } cases[] = {{4, {"-msse2", "-msse2"}, "movnt"},
               {8, {"-mavx2", "-mfma"}, "%ymm0, (%r"},
               {16, {"-mavx512f", "-mfma"}, "%zmm0, (%r"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    t->kernels.n = 0;
    stream(t, DT_F32, cases[i].lanes, 0);
    for (size_t c = 0; c < t->compilers; c++) {
      const char *text = assembly(t, &t->cc[c], cases[i].machine);
      assert_true(count(text, "movnt") > 0 && count(text, "sfence") == 1);
      assert_true(count(text, cases[i].wanted) > 0);
    }
  }
}
#endif

TEST(test_gates) {
  for (unsigned lanes = 1; lanes <= 8; lanes *= 8) {
    begin(t, arena_printf(t->a, "gates_%u", lanes));
    const node *in = param(t, DT_F32, N), *out = param(t, DT_F32, N + 64);
    const node *open = param(t, DT_BOOL, N);
    fill_any(t, in);
    fill_any(t, open);
    const node *i = open_range(t, 3 * N / 2 / lanes);
    const node *at = op2(t, OP_SUB, op2(t, OP_MUL, i, number(t, lanes)), number(t, N / 4));
    const node *low = op2(t, OP_LE, number(t, 0), at), *high = op2(t, OP_LT, at, number(t, N));
    const node *inside = op2(t, OP_AND, low, high);
    const node *here = gated(t, inside, at);
    const node *flag = load(t, open, 1, here);
    const node *twice = gated(t, flag, here);
    const node *v = op1(t, OP_NEG, load(t, in, lanes, here));
    const node *w = op2(t, OP_SUB, v, load(t, in, lanes, twice));
    end_range(t, i, store(t, out, twice, w));
  }
  begin(t, "nowhere");
  const node *out = param(t, DT_I32, 2), *in = param(t, DT_I32, 2);
  fill_any(t, in);
  fill_any(t, out);
  const node *invalid = make(t, OP_INVALID, DT_I64, 1, NULL, 0, NULL, 0);
  store(t, out, number(t, 1), load(t, in, 1, invalid));
  store(t, out, invalid, load(t, in, 1, number(t, 0)));
  check_scalars(t);
}

/** Loads under one mask, at constant distances from each other, near and far. */
TEST(test_distant_gates) {
  enum { FAR = 1 << 21 };
  for (int open = 0; open < 2; open++) {
    begin(t, arena_printf(t->a, "distant_gates_%d", open));
    const node *in = param(t, DT_F32, FAR + N), *out = param(t, DT_F32, N);
    interp_array *a = array(t, in);
    for (int64_t i = 0; i < a->dims[0]; i++)
      set(a, (size_t)i, scalar_from_double(DT_F32, 1 + i % 99));
    const node *least = variable(t, DT_I64, "least", 9, open ? 0 : 9);
    const node *other = variable(t, DT_I64, "other", 9, 0);
    const node *i = open_range(t, 4), *sum = ir_const(t->g, DT_F32, 0);
    const node *masks[] = {op2(t, OP_LE, least, i), op2(t, OP_LE, other, i)};
    static const int64_t offsets[] = {0, 8, 500, FAR, FAR + 8};
    for (size_t k = 0; k < 2 * sizeof offsets / sizeof *offsets; k++) {
      const node *at = op2(t, OP_ADD, i, number(t, offsets[k / 2]));
      sum =
          op2(t, OP_ADD, op2(t, OP_MUL, sum, ir_const(t->g, DT_F32, scalar_from_double(DT_F32, 3))),
              load(t, in, 1, gated(t, masks[k % 2], at)));
    }
    end_range(t, i, store(t, out, i, sum));
  }
  check(t);
}

/** Loops that run as often as a variable says, also never. */
TEST(test_varying_loops) {
  for (int64_t n = 0; n < 3; n++) {
    begin(t, arena_printf(t->a, "varying_loops_%d", (int)n));
    const node *in = param(t, DT_I32, N), *out = param(t, DT_I32, N);
    fill_any(t, in);
    const node *i = open_as(t, DT_I64, variable(t, DT_I64, "n", 3, n));
    end_range(t, i, store(t, out, i, load(t, in, 1, i)));
  }
  check(t);
}

TEST(test_scratch) {
  begin(t, "scratch");
  const node *in = param(t, DT_F32, N), *out = param(t, DT_F32, N);
  fill_any(t, in);
  const node *o = open_range(t, 2), *s = alloc(t, DT_F32, 1, N / 2, 1);
  const node *flags = alloc(t, DT_BOOL, 1, N / 2, 1), *unread = alloc(t, DT_I32, 1, 9, 1);
  const node *base = op2(t, OP_MUL, o, number(t, N / 2));
  const node *i = open_range(t, N / 2), *x = load(t, in, 1, op2(t, OP_ADD, base, i));
  const node *zero = ir_const(t->g, DT_F32, 0);
  store(t, unread, number(t, 3), ir_const_int(t->g, DT_I32, 1));
  const node *f = store(t, flags, i, op2(t, OP_LT, x, zero));
  const node *e = store(t, s, i, op2(t, OP_MUL, x, x));
  end_range(t, i, e);
  const node *k = open_range(t, N / 2 / 8), *at = op2(t, OP_MUL, k, number(t, 8));
  const node *m = load(t, after(t, flags, f), 8, at), *v = load(t, after(t, s, e), 8, at);
  const node *r = op3(t, OP_WHERE, m, op1(t, OP_NEG, v), v);
  end_range(t, k, store(t, out, op2(t, OP_ADD, base, at), r));
  const node *ends[] = {o, e};
  add(t, make(t, OP_END, DT_VOID, 1, ends, 2, NULL, 0));
  check(t);
}

/** A buffer that is read and written, and 32-bit indices. */
TEST(test_in_place) {
  const node *at;
  begin(t, "in_place");
  const node *p = param(t, DT_I32, N), *q = param(t, DT_I32, N);
  fill_any(t, p);
  fill_any(t, q);
  const node *i = each(t, 8, &at);
  const node *v = op2(t, OP_ADD, load(t, p, 8, at), load(t, q, 8, at));
  end_range(t, i, store(t, p, at, v));
  begin(t, "index32");
  const node *in = param(t, DT_F64, N), *out = param(t, DT_F64, N);
  fill_any(t, in);
  const node *k = open_as(t, DT_I32, ir_const_int(t->g, DT_I32, N));
  const node *most = ir_const_int(t->g, DT_I32, N - 1);
  end_range(t, k, store(t, out, op2(t, OP_SUB, most, k), load(t, in, 1, k)));
  check(t);
}

/* Lanes. */

TEST(test_lanes) {
  begin(t, "lanes");
  const node *in = param(t, DT_F32, N), *out = param(t, DT_F32, N), *flags = param(t, DT_BOOL, N);
  fill_any(t, in);
  const node *i = open_range(t, N / 4), *at = op2(t, OP_MUL, i, number(t, 4));
  const node *x[4], *b[4], *c[4], *zero = ir_const(t->g, DT_F32, 0);
  for (int64_t k = 0; k < 4; k++) {
    const node *place = op2(t, OP_SUB, number(t, N - 1), op2(t, OP_ADD, at, number(t, k)));
    x[k] = load(t, in, 1, place);
    b[k] = op2(t, OP_LT, x[k], zero);
  }
  const node *v = vectorize(t, 4, x), *m = vectorize(t, 4, b);
  const node *r = op3(t, OP_WHERE, m, op2(t, OP_MUL, v, v), v), *last = NULL;
  const node *both = op2(t, OP_XOR, m, op2(t, OP_LE, r, v));
  store(t, flags, at, both);
  for (int64_t k = 0; k < 4; k++) {
    c[k] = extract(t, r, 3 - k);
    const node *one = extract(t, both, k), *place = op2(t, OP_ADD, at, number(t, k));
    last = store(t, out, place, op3(t, OP_WHERE, one, c[k], x[k]));
  }
  end_range(t, i, last);
  check(t);
}

/* Masks of several widths are combined. */
TEST(test_mask_widths) {
  const node *at;
  for (unsigned lanes = 2; lanes <= 16; lanes *= 2) {
    begin(t, arena_printf(t->a, "masks_%u", lanes));
    const node *f = param(t, DT_F32, N), *d = param(t, DT_F64, N), *b = param(t, DT_BOOL, N),
               *h = param(t, DT_I16, N), *out = param(t, DT_BOOL, N);
    fill_any(t, f);
    fill_any(t, d);
    fill_any(t, b);
    fill_any(t, h);
    const node *yes = splat(t, lanes, ir_const_bits(t->g, DT_BOOL, 1));
    const node *i = each(t, lanes, &at), *x = load(t, f, lanes, at), *y = load(t, d, lanes, at);
    const node *z = load(t, h, lanes, at), *w = load(t, b, lanes, at);
    const node *zero = splat(t, lanes, ir_const(t->g, DT_F32, 0));
    const node *positive = op2(t, OP_LT, zero, x);
    const node *finite = op2(t, OP_EQ, op2(t, OP_SUB, y, y), cast(t, DT_F64, zero));
    const node *odd =
        cast(t, DT_BOOL, op2(t, OP_AND, z, splat(t, lanes, ir_const_int(t->g, DT_I16, 1))));
    const node *all = op2(t, OP_AND, op2(t, OP_OR, positive, w), finite);
    const node *some = op3(t, OP_WHERE, odd, all, op1(t, OP_NOT, positive));
    const node *less = op2(t, OP_LT, some, op2(t, OP_MAX, w, odd));
    store(t, f, at, op3(t, OP_WHERE, all, x, cast(t, DT_F32, some)));
    store(t, d, at, op3(t, OP_WHERE, positive, y, cast(t, DT_F64, less)));
    store(t, h, at, op3(t, OP_WHERE, less, z, cast(t, DT_I16, finite)));
    const node *either = op2(t, OP_NE, op2(t, OP_LE, some, yes), op2(t, OP_MIN, less, odd));
    end_range(t, i, store(t, out, at, either));
  }
  check(t);
}

/** A mask register is accumulated. */
TEST(test_mask_registers) {
  begin(t, "any");
  const node *in = param(t, DT_F32, N), *out = param(t, DT_BOOL, 8), *nil = number(t, 0), *at;
  fill_between(t, in, 0, 9);
  const node *r = alloc(t, DT_BOOL, 8, 1, 0);
  const node *no = splat(t, 8, ir_const_bits(t->g, DT_BOOL, 0)), *first = store(t, r, nil, no);
  const node *i = each(t, 8, &at), *limit = splat(t, 8, ir_const(t->g, DT_F32, 8.5));
  const node *over = op2(t, OP_LT, limit, load(t, in, 8, at));
  const node *s = store(t, r, nil, op2(t, OP_OR, load(t, after(t, r, first), 8, nil), over));
  end_range(t, i, s);
  store(t, out, nil, load(t, after(t, r, s), 8, nil));
  check(t);
}

/* Runtime values. */

TEST(test_workers) {
  begin(t, "workers");
  const node *in = param(t, DT_I32, N), *out = param(t, DT_I32, N);
  fill_any(t, in);
  int64_t most[] = {1, 64};
  const node *count = named(t, OP_VAR, DT_I64, "core_count", NULL, most, 2);
  const node *id = add(t, named(t, OP_SPECIAL, DT_I64, "core_id", count, NULL, 0));
  const node *n = variable(t, DT_I32, "rows of x", 1000, 9), *wide = cast(t, DT_I64, n);
  const node *next = op2(t, OP_ADD, id, number(t, 1)), *units = number(t, 20);
  const node *from = op2(t, OP_CDIV, op2(t, OP_MUL, id, units), count);
  const node *to = op2(t, OP_CDIV, op2(t, OP_MUL, next, units), count);
  const node *i = open_as(t, DT_I64, op2(t, OP_SUB, to, from)), *unit = op2(t, OP_ADD, i, from);
  const node *k = open_as(t, DT_I32, n);
  const node *at = op2(t, OP_ADD, op2(t, OP_MUL, unit, wide), cast(t, DT_I64, k));
  const node *v = op2(t, OP_MUL, load(t, in, 1, at), n);
  const node *s = store(t, out, at, v);
  end_range(t, k, s);
  end_range(t, i, s);
  tn_program_spec r = spec_of(t, linear_of(t, t->k));
  assert_int_equal(r.n_globals, 2);
  assert_int_equal(r.n_values, 3);
  assert_string_equal(r.value_names[0], "core_count");
  assert_string_equal(r.value_names[1], "core_id");
  assert_string_equal(r.value_names[2], "rows of x");
  check_with(t, true, 3);
}

/** Slots may have gaps; an unused argument still counts. */
TEST(test_unused_arguments) {
  begin(t, "unused");
  const node *a = param(t, DT_F32, 4), *b = param(t, DT_F32, 4), *c = param(t, DT_F32, 4);
  fill_any(t, b);
  variable(t, DT_I64, "n", 9, 3);
  load(t, a, 1, number(t, 0));
  store(t, c, number(t, 2), load(t, b, 1, number(t, 3)));
  begin(t, "nothing");
  check(t);
}

/* Long chains do not nest without limit, and integers wrap in them. */
TEST(test_long_chains) {
  enum { LENGTH = 3000 };
  begin(t, "chain");
  const node *in = param(t, DT_I64, 4), *out = param(t, DT_I64, 4);
  fill_any(t, in);
  const node *x = load(t, in, 1, number(t, 0));
  for (int i = 0; i < LENGTH; i++) x = op2(t, i % 3 ? OP_ADD : OP_MUL, x, number(t, i + 3));
  store(t, out, number(t, 0), x);
  begin(t, "float_chain");
  const node *f = param(t, DT_F32, 16), *g = param(t, DT_F32, 16);
  fill_any(t, f);
  const node *y = load(t, f, 8, number(t, 0));
  for (int i = 0; i < LENGTH / 10; i++)
    y = op2(t, i % 3 ? OP_ADD : OP_MUL, y, splat(t, 8, ir_const(t->g, DT_F32, 1 + i / 64.0)));
  store(t, g, number(t, 8), y);
  check_scalars(t);
}

/** Arithmetic whose bounds are almost those of its type. */
TEST(test_bounds) {
  begin(t, "bounds");
  const node *in = param(t, DT_I32, 8), *out = param(t, DT_I64, 64), *out32 = param(t, DT_I32, 64);
  fill_any(t, in);
  static const int64_t factors[] = {1, -1, 1 << 30, 2147483647, -2147483647 - 1};
  const node *most = number(t, INT64_MAX), *last = NULL;
  const node *i = open_range(t, 8), *x = load(t, in, 1, i), *wide = cast(t, DT_I64, x);
  for (size_t k = 0; k < 5; k++) {
    const node *at = op2(t, OP_ADD, op2(t, OP_MUL, i, number(t, 5)), number(t, (int64_t)k));
    const node *a = op2(t, OP_MUL, wide, number(t, factors[k]));
    const node *b = op2(t, OP_ADD, op2(t, OP_SUB, a, most), op2(t, OP_MUL, i, most));
    store(t, out, at, op1(t, OP_NEG, b));
    const node *narrow = op2(t, OP_MUL, x, ir_const_int(t->g, DT_I32, factors[k]));
    const node *c = op2(t, OP_CMOD, cast(t, DT_I32, i), ir_const_int(t->g, DT_I32, 3));
    const node *sum = op2(t, OP_SUB, op1(t, OP_NEG, narrow), c);
    last = store(t, out32, at, op2(t, OP_MAX, sum, op2(t, OP_MIN, x, c)));
  }
  end_range(t, i, last);
  check_scalars(t);
}

/* Programs made by the passes before. */

static const node *matrix(test *t, int64_t rows, int64_t columns) {
  const node *p = param(t, DT_F32, rows * columns);
  const node *dims[] = {ix_const(t->g, rows), ix_const(t->g, columns)};
  return ir_node(t->g, OP_PARAM, DT_F32, dims, 2, p->ints, 1);
}

static const node *element(test *t, const node *of, const node *row, const node *column) {
  const node *at[] = {row, column};
  return index_make(t->g, DT_F32, of, 0, 2, at);
}

/** Builds out = a·b with rows in registers and columns in lanes, the columns past the last
    masked. */
static void matmul(test *t, range_kind rows_kind, int64_t lanes) {
  enum { ROWS = 4, DEPTH = 5, COLUMNS = 19 };
  begin(t, arena_printf(t->a, "matmul_%s_%lld", range_kind_name(rows_kind), (long long)lanes));
  const node *out = matrix(t, ROWS, COLUMNS), *a = matrix(t, ROWS, DEPTH),
             *b = matrix(t, DEPTH, COLUMNS);
  fill_between(t, a, -9, 9);
  fill_between(t, b, -9, 9);
  int64_t blocks = (COLUMNS + lanes - 1) / lanes;
  const node *i = range_make(t->g, ix_const(t->g, ROWS), rows_kind);
  const node *block = range_make(t->g, ix_const(t->g, blocks), KIND_LOOP);
  const node *lane = range_make(t->g, ix_const(t->g, lanes), KIND_VECTOR);
  const node *k = range_make(t->g, ix_const(t->g, DEPTH), KIND_LOOP);
  const node *j = ix_add(t->g, ix_scale(t->g, block, lanes), lane);
  const node *product = ir_op2(t->g, OP_MUL, element(t, a, i, k), element(t, b, k, j));
  const node *sum = fold_make_reduction(t->g, OP_ADD, product, 1, &k);
  const node *stage = stage_make(t->g, &(stage_spec){.n_values = 1,
                                                     .n_ranges = 3,
                                                     .values = &sum,
                                                     .ranks = (const size_t[]){2},
                                                     .coords = (const node *[]){i, j},
                                                     .extents = out->dims,
                                                     .ranges = (const node *[]){i, block, lane}});
  const node *src[] = {out, stage};
  const node *write = ir_node(t->g, OP_OUT, DT_VOID, src, 2, NULL, 0);
  const node *sink = ir_node(t->g, OP_SINK, DT_VOID, &write, 1, NULL, 0);
  sink = codegen_expand(t->g, codegen_lower(t->g, sink));
  sink = codegen_parallel_loops(t->g, sink, &(target){0});
  sink = codegen_index_width(t->g, sink, &(target){0});
  const node *linear = codegen_linearise(t->g, sink);
  for (uint32_t n = 0; n < linear->n_src; n++) vec_push(t->a, &t->k->list, linear->src[n]);
}

TEST(test_passes) {
  matmul(t, KIND_UNROLL, 8);
  matmul(t, KIND_THREAD, 4);
  matmul(t, KIND_LOOP, 16);
  check_with(t, false, 3);
}

/* The text. */

TEST(test_text) {
  begin(t, "text");
  const node *out = param(t, DT_F32, 64), *a = param(t, DT_F32, 64), *nil = number(t, 0);
  const node *acc = alloc(t, DT_F32, 8, 1, 0), *zero = ir_const(t->g, DT_F32, 0);
  const node *first = store(t, acc, nil, splat(t, 8, zero));
  const node *i = open_range(t, 7), *at = op2(t, OP_MUL, i, number(t, 8));
  const node *x = load(t, a, 8, at), *y = load(t, a, 8, op2(t, OP_ADD, at, number(t, 8)));
  const node *old = load(t, after(t, acc, first), 8, nil);
  const node *s = store(t, acc, nil, op3(t, OP_FMA, x, y, old));
  end_range(t, i, s);
  store(t, out, nil, load(t, after(t, acc, s), 8, nil));
  str text = str_new(t->a);
  render(t, t->k, "dot", &text);
  const char *function = strstr(str_text(&text), "static void");
  assert_non_null(function);
  assert_string_equal(
      function,
      "static void dot_body(float_at *restrict p0, const float_at *restrict p1) {\n"
      "  f32x8 acc0;\n"
      "  acc0 = splat_f32x8(0.0f);\n"
      "  for (int64_t i0 = 0; i0 < 7L; i0++) {\n"
      "    const int64_t x0 = i0 * 8L;\n"
      "    acc0 = fma_f32x8(*(const f32x8m *)(p1 + x0), *(const f32x8m *)(p1 + (x0 + 8L)), acc0);\n"
      "  }\n"
      "  *(f32x8m *)(p0 + 0L) = acc0;\n"
      "}\n"
      "\n"
      "void dot(void *const *restrict bufs, const int64_t *restrict vals) {\n"
      "  (void)bufs, (void)vals;\n"
      "  dot_body(bufs[0], bufs[1]);\n"
      "}\n");
  str again = str_new(t->a);
  render(t, t->k, "dot", &again);
  assert_string_equal(str_text(&text), str_text(&again));
}

/** Pairs of workers swap elements in memory that they share: the load stays before the barrier. */
TEST(test_text_of_teams) {
  begin(t, "teams");
  const node *out = param(t, DT_F32, 64), *a = param(t, DT_F32, 64);
  const node *group = add(t, named(t, OP_SPECIAL, DT_I32, "g0", number(t, 4), NULL, 0));
  const node *worker = add(t, named(t, OP_SPECIAL, DT_I32, "l0", number(t, 16), NULL, 0));
  const node *sixteen = ir_const_int(t->g, DT_I32, 16), *one = ir_const_int(t->g, DT_I32, 1);
  const node *at = op2(t, OP_ADD, op2(t, OP_MUL, group, sixteen), worker);
  const node *shared = alloc(t, DT_F32, 1, 16, SPACE_GROUP);
  int64_t meets[] = {ir_fresh_id(t->g), SPACE_GROUP}, again[] = {ir_fresh_id(t->g), SPACE_GROUP};
  const node *first = store(t, shared, worker, load(t, a, 1, at));
  add(t, make(t, OP_BARRIER, DT_VOID, 1, NULL, 0, meets, 2));
  const node *other = op2(t, OP_XOR, worker, one);
  const node *x = load(t, after(t, shared, first), 1, other);
  add(t, make(t, OP_BARRIER, DT_VOID, 1, NULL, 0, again, 2));
  store(t, out, at, op1(t, OP_SQRT, x));
  const node *linear = linear_of(t, t->k);
  tn_program_spec spec = spec_of(t, linear);
  str text = str_new(t->a);
  spec.entry = "swap";
  render_c(linear, &spec, &c_opencl, &text);
  assert_string_equal(strstr(str_text(&text), "static inline"),
                      "static inline void swap_body(__global float *restrict p0, __global const "
                      "float *restrict p1, "
                      "__local float *restrict g0) {\n"
                      "  const int x0 = ((int)get_group_id(0) * 16) + (int)get_local_id(0);\n"
                      "  g0[(int)get_local_id(0)] = p1[x0];\n"
                      "  barrier(CLK_LOCAL_MEM_FENCE);\n"
                      "  const float x1 = g0[(int)get_local_id(0) ^ 1];\n"
                      "  barrier(CLK_LOCAL_MEM_FENCE);\n"
                      "  p0[x0] = root_float(x1);\n"
                      "}\n"
                      "\n"
                      "__kernel __attribute__((reqd_work_group_size(16, 1, 1)))\n"
                      "void swap(__global uchar *b0, ulong o0, __global uchar *b1, ulong o1) {\n"
                      "  __local float g0[16];\n"
                      "  swap_body((__global float *)(b0 + o0), (__global float *)(b1 + o1), g0);\n"
                      "}\n");
  text = str_new(t->a);
  render_c(linear, &spec, &c_cuda, &text);
  assert_string_equal(
      strstr(str_text(&text), "static __device__"),
      "static __device__ __forceinline__ void swap_body(float *__restrict__ p0, const float "
      "*__restrict__ p1, float *g0) {\n"
      "  const int x0 = ((int)blockIdx.x * 16) + (int)threadIdx.x;\n"
      "  g0[(int)threadIdx.x] = p1[x0];\n"
      "  __syncthreads();\n"
      "  const float x1 = g0[(int)threadIdx.x ^ 1];\n"
      "  __syncthreads();\n"
      "  p0[x0] = sqrtf(x1);\n"
      "}\n"
      "\n"
      "extern \"C\" __global__ void __launch_bounds__(16) swap(float *__restrict__ b0, const float "
      "*__restrict__ b1) {\n"
      "  __shared__ float g0[16];\n"
      "  swap_body(b0, b1, g0);\n"
      "}\n");
}

/* Refused programs. */

static void render_body(void *arg) {
  test *t = arg;
  str s = str_new(t->a);
  render(t, t->k, "k", &s);
}

static void refuse(test *t, tn_status status, const char *said) {
  assert_int_equal(diag_catch(&t->d, render_body, t), status);
  if (!strstr(t->d.text, said)) fail_msg("\"%s\" lacks \"%s\"", t->d.text, said);
}

static const node *one_value(test *t, dtype type, unsigned lanes) {
  begin(t, "refused");
  return load(t, param(t, type, 64), lanes, number(t, 0));
}

static void store_value(test *t, const node *v) {
  store(t, param(t, v->dtype, 64), number(t, 0), v);
}

TEST(test_refusals) {
  const node *x = one_value(t, DT_F32, 1);
  store_value(t, op1(t, OP_EXP, x));
  refuse(t, TN_ERR_UNSUPPORTED, "exp");
  x = one_value(t, DT_F16, 4);
  store_value(t, op2(t, OP_ADD, x, x));
  refuse(t, TN_ERR_UNSUPPORTED, "add");
  x = one_value(t, DT_BF16, 1);
  store_value(t, cast(t, DT_F32, x));
  refuse(t, TN_ERR_UNSUPPORTED, "bf16");
  x = one_value(t, DT_F32, 3);
  store_value(t, x);
  refuse(t, TN_ERR_UNSUPPORTED, "3 lanes");
  x = one_value(t, DT_F32, 1);
  store_value(t, ir_op2(t->g, OP_ADD, x, x));
  refuse(t, TN_ERR_INTERNAL, "add");
  begin(t, "loop");
  const node *i = open_range(t, 3), *k = open_range(t, 3);
  store(t, param(t, DT_I64, 9), i, k);
  refuse(t, TN_ERR_INTERNAL, "open");
  end_range(t, i, k);
  refuse(t, TN_ERR_INTERNAL, "innermost");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_elementwise_scalars),
    cmocka_unit_test(test_elementwise_4_lanes),
    cmocka_unit_test(test_elementwise_16_lanes),
    cmocka_unit_test(test_text_of_shifts),
    cmocka_unit_test(test_instructions),
    cmocka_unit_test(test_lacks),
    cmocka_unit_test(test_casts_of_scalars),
    cmocka_unit_test(test_casts_of_vectors),
    cmocka_unit_test(test_bitcasts),
    cmocka_unit_test(test_halves),
    cmocka_unit_test(test_constants),
    cmocka_unit_test(test_vector_constants),
    cmocka_unit_test(test_accumulators),
#ifdef __x86_64__
    cmocka_unit_test(test_assembly_of_the_tile),
#endif
    cmocka_unit_test(test_text_of_tiles),
    cmocka_unit_test(test_states_step_at_once),
    cmocka_unit_test(test_register_elements),
    cmocka_unit_test(test_streams),
    cmocka_unit_test(test_text_of_streams),
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
    cmocka_unit_test(test_assembly_of_streams),
#endif
    cmocka_unit_test(test_gates),
    cmocka_unit_test(test_distant_gates),
    cmocka_unit_test(test_varying_loops),
    cmocka_unit_test(test_scratch),
    cmocka_unit_test(test_in_place),
    cmocka_unit_test(test_lanes),
    cmocka_unit_test(test_mask_widths),
    cmocka_unit_test(test_mask_registers),
    cmocka_unit_test(test_workers),
    cmocka_unit_test(test_unused_arguments),
    cmocka_unit_test(test_long_chains),
    cmocka_unit_test(test_bounds),
    cmocka_unit_test(test_passes),
    cmocka_unit_test(test_text),
    cmocka_unit_test(test_text_of_teams),
    cmocka_unit_test(test_refusals),
  };
  for (size_t i = 0; i < DRIVERS; i++)
    if (!driver_kernels_open(&on_driver[i], drivers[i].backend))
      print_message("without %s: %s\n", drivers[i].name, on_driver[i].diag.text);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  for (size_t i = 0; i < DRIVERS; i++) driver_kernels_close(&on_driver[i]);
  return failed;
}
