/* Copies between tensors and host memory: tn_from_host and tn_read copy, tn_wrap_host and tn_map
   share memory without a copy, and tn_write assigns a copy to a state. Reading realises the tensor
   first. */
#include "device/memory/span.h"
#include "tensor/api/assign.h"
#include "tensor/context/call.h"
#include "tensor/context/symbolic_dims.h"
#include "tensor/eval/realize.h"
#include "tensor/ops/op_call.h"
#include "tensor/state/graph_input.h"
#include "tensor/state/handle_node.h"
#include "tensor/state/state.h"

#include <string.h>

/* ---- From the host ---- */

/** A new BUFFER, which is freed when the call ends unless something else holds it by then. */
static const node *new_data(builder *b, dtype t, size_t rank, const node *const sizes[]) {
  const node *n;
  if (graph_input_open(b->context, GRAPH_INPUT_DATA, 1, t, rank, sizes, &n) != TN_OK)
    diag_rethrow(b->diag);
  ir_release(b->ir, n); /* new nodes are kept until the call ends */
  return n;
}

static tn_status fill_data(tn_context *c, const node *n, dtype from, const void *data,
                           size_t count) {
  tn_buffer *memory;
  tn_span span;
  uint64_t bytes = (uint64_t)count * dtype_bytes((dtype)n->dtype);
  tn_status s = buffer_open(c->device, bytes, &memory, &c->diag);
  if (s != TN_OK) return s;
  s = buffer_span(memory, &span, &c->diag);
  if (s == TN_OK) s = span_write(&span, (dtype)n->dtype, from, data, count, &c->diag);
  if (s == TN_OK) graph_input_set_memory(c, n, memory);
  buffer_release(memory);
  return s;
}

static value host_value(builder *b, dtype t, size_t rank, const node *const sizes[], dtype from,
                        const void *data, size_t count) {
  const node *n = new_data(b, t, rank, sizes);
  if (fill_data(b->context, n, from, data, count) != TN_OK) diag_rethrow(b->diag);
  return (value){n, WEAK_NO};
}

typedef struct host_job {
  tn_shape shape;
  tn_dtype dtype;
  const void *data;
  size_t bytes;
  void (*destroy)(void *user);
  void *user;
  bool is_owned; /* a buffer owns the payload */
} host_job;

/** Checks a type and the exact number of bytes; returns the number of elements. */
static size_t check_host(builder *b, const host_job *j, const node *sizes[]) {
  dtype t = dims_check_dtype(b, j->dtype);
  size_t count = dims_to_static_nodes(b, j->shape, dtype_bytes(t), sizes);
  if (j->bytes != count * dtype_bytes(t))
    diag_raise(b->diag, TN_ERR_ARGUMENT, "%zu bytes are given; %zu elements of %s need %zu",
               j->bytes, count, dtype_name(t), count * dtype_bytes(t));
  if (!j->data && count) diag_raise(b->diag, TN_ERR_ARGUMENT, "the data is NULL");
  return count;
}

static value build_copy(builder *b, const value in[], size_t n, const void *options) {
  (void)in, (void)n;
  const host_job *j = options;
  const node *sizes[TN_MAX_RANK + 1];
  size_t count = check_host(b, j, sizes);
  return host_value(b, (dtype)j->dtype, (size_t)j->shape.rank, sizes, (dtype)j->dtype, j->data,
                    count);
}

tn_tensor *tn_from_host(tn_context *c, tn_shape shape, tn_dtype dtype, const void *data,
                        size_t bytes) {
  host_job j = {.shape = shape, .dtype = dtype, .data = data, .bytes = bytes};
  return op_call_in(c, "from_host", build_copy, &j);
}

/** Payload of wrapped memory, destroyed by the caller's function. */
typedef struct wrapped {
  tn_context *context;
  void (*destroy)(void *user);
  void *user;
} wrapped;

static void unwrap(void *arg) {
  const wrapped w = *(wrapped *)arg;
  mem_free(&w.context->mem, arg, sizeof w);
  callbacks_destroy_payload(w.context, w.destroy, w.user);
}

static value build_wrap(builder *b, const value in[], size_t n, const void *options) {
  host_job *j = (host_job *)options;
  const node *sizes[TN_MAX_RANK + 1];
  if (!check_host(b, j, sizes)) return build_copy(b, in, n, options); /* no memory to wrap */
  if ((uintptr_t)j->data % dtype_bytes((dtype)j->dtype))
    diag_raise(b->diag, TN_ERR_ARGUMENT, "the data is not aligned to its elements, of %zu bytes",
               dtype_bytes((dtype)j->dtype));
  const node *made = new_data(b, (dtype)j->dtype, (size_t)j->shape.rank, sizes);
  tn_buffer *memory;
  wrapped *w = NULL;
  if (j->destroy) {
    if (!(w = mem_alloc(&b->context->mem, sizeof *w)))
      diag_raise(b->diag, TN_ERR_MEMORY, "out of memory");
    *w = (wrapped){b->context, j->destroy, j->user};
  }
  j->is_owned = true;
  if (buffer_import(b->context->device, (void *)j->data, j->bytes, w ? unwrap : NULL, w, &memory,
                    b->diag) != TN_OK)
    diag_rethrow(b->diag);
  graph_input_set_memory(b->context, made, memory);
  buffer_release(memory);
  return (value){made, WEAK_NO};
}

tn_tensor *tn_wrap_host(tn_context *c, tn_shape shape, tn_dtype dtype, const void *data,
                        size_t bytes, void (*destroy)(void *user), void *user) {
  host_job j = {shape, dtype, data, bytes, destroy, user, false};
  tn_tensor *t = op_call_in(c, "wrap_host", build_wrap, &j);
  if (!j.is_owned) callbacks_destroy_payload(c, destroy, user);
  return t;
}

/* ---- To the host ---- */

/** The realised contents of a handle: a BUFFER with memory, retained. */
typedef struct contents {
  tn_context *c;
  tn_tensor *t;
  const node *node;
  bool is_whole_state; /* the handle is a state, not a movement of one */
} contents;

static void retain_node(void *arg) {
  contents *k = arg;
  builder b = context_builder(k->c);
  k->node = ir_retain(handle_typed_node(&b, k->t));
}

static void retain_committed(void *arg) {
  contents *k = arg;
  builder b = context_builder(k->c);
  state_refresh(&b, k->t->state);
  k->node = ir_retain(k->t->state->versions.committed);
}

/** Realises the contents of a handle. The handle of a value keeps the BUFFER; the contents of a
    state are in its storage. */
static tn_status realize_contents(contents *k) {
  tn_context *c = k->c;
  const node **own = NULL; /* slot in which the handle keeps its realised node */
  if (!k->t->state && !k->t->weak) own = &k->t->node;
  if (!k->t->state && k->t->weak && k->t->mapped) own = &k->t->mapped;
  k->is_whole_state = k->t->state && k->t->node == k->t->state->versions.view_base;
  tn_status s = own || k->is_whole_state ? TN_OK : diag_catch(&c->diag, retain_node, k);
  const evaluation_request a = {.slot = own ? own : &k->node};
  if (s == TN_OK) s = realize(c, REALIZE_ALL_ASSIGNS, &a, !k->is_whole_state);
  if (s == TN_OK && k->is_whole_state) s = diag_catch(&c->diag, retain_committed, k);
  if (s != TN_OK) return s;
  if (own) k->node = ir_retain(*own);
  return TN_OK;
}

/** Realises contents whose sizes are computed: they are numbers afterwards. */
static tn_status realize_sizes(contents *k) {
  uint64_t count;
  if (!ir_has_items(k->c->ir) || dims_static_count(k->t->node, &count)) return TN_OK;
  tn_status s = realize_contents(k);
  ir_release(k->c->ir, k->node);
  k->node = NULL;
  return s;
}

typedef struct read_job {
  contents contents;
  tn_dtype dtype;
  void *data;
  size_t bytes;
} read_job;

static void check_read(void *arg) {
  read_job *j = arg;
  builder b = context_builder(j->contents.c);
  const tn_tensor *t = j->contents.t;
  uint64_t count;
  size_t size = dtype_bytes(dims_check_dtype(&b, j->dtype));
  if (!dims_static_count(t->node, &count))
    diag_raise(b.diag, TN_ERR_SHAPE,
               "the tensor's sizes vary, so that it has a value in runs of a plan only");
  if (count > SIZE_MAX / size || j->bytes != count * size)
    diag_raise(b.diag, TN_ERR_ARGUMENT, "%zu bytes are given; %llu elements of %s need %llu",
               j->bytes, (unsigned long long)count, tn_dtype_name(j->dtype),
               (unsigned long long)(count * size));
  if (!j->data && count) diag_raise(b.diag, TN_ERR_ARGUMENT, "the data is NULL");
}

/** Copies contents out. The storage of a state is read in a turn of its own among runs of plans. */
static tn_status copy_out(read_job *j) {
  contents *k = &j->contents;
  tn_context *c = k->c;
  storage_turn t = {.storage = graph_input_storage(graph_input_of(c, k->node))};
  tn_span span;
  uint64_t count;
  dims_static_count(k->node, &count);
  if (t.storage) storage_turns_take(c, &t, 1);
  tn_status s = t.storage ? storage_turns_wait(&t, 1, &c->diag) : TN_OK;
  tn_buffer *memory = k->is_whole_state ? t.storage->memory : graph_input_of(c, k->node)->memory;
  if (s == TN_OK) s = buffer_span(memory, &span, &c->diag);
  if (s == TN_OK)
    s = span_read(&span, (dtype)k->node->dtype, (dtype)j->dtype, j->data, (size_t)count, &c->diag);
  if (t.storage) storage_turns_end(&t, 1);
  return s;
}

tn_status tn_read(tn_tensor *t, tn_dtype dtype, void *data, size_t bytes) {
  if (!t) return TN_ERR_ARGUMENT;
  tn_context *c = t->context;
  tn_status s = context_acquire_valid(c);
  if (s != TN_OK) return s;
  read_job j = {{.c = c, .t = t}, dtype, data, bytes};
  s = handle_check(c, t, "read");
  if (s == TN_OK) {
    s = realize_sizes(&j.contents);
    if (s == TN_OK) s = diag_catch(&c->diag, check_read, &j);
    if (s == TN_OK) s = realize_contents(&j.contents);
    if (s == TN_OK && bytes) s = copy_out(&j);
    if (s != TN_OK) context_fail(c, "read", &t, 1);
    ir_release(c->ir, j.contents.node);
  }
  context_release(c);
  return s;
}

/* ---- To a state ---- */

typedef struct write_job {
  tn_tensor *state;
  host_job from;
} write_job;

static void make_write(void *arg) {
  write_job *j = arg;
  builder b = context_builder(j->state->context);
  const node *view = j->state->node, *sizes[TN_MAX_RANK + 1];
  state_check_assignable(&b, j->state);
  j->from.shape = dims_from_node(&b, view);
  size_t count = check_host(&b, &j->from, sizes);
  value v = host_value(&b, (dtype)view->dtype, view->rank, view->dims, (dtype)j->from.dtype,
                       j->from.data, count);
  const node *n = v.node;
  int64_t device[] = {(int64_t)node_device_number(view, 0)};
  if (device[0]) n = ir_node(b.ir, OP_TO, (dtype)n->dtype, &n, 1, device, 1);
  state_assign(&b, j->state, n);
}

tn_status tn_write(tn_tensor *state, tn_dtype dtype, const void *data, size_t bytes) {
  if (!state) return TN_ERR_ARGUMENT;
  tn_context *c = state->context;
  tn_status s = context_acquire_valid(c);
  if (s != TN_OK) return s;
  write_job j = {state, {.dtype = dtype, .data = data, .bytes = bytes}};
  s = handle_check(c, state, "write");
  if (s == TN_OK && (s = diag_catch(&c->diag, make_write, &j)) != TN_OK)
    context_fail(c, "write", &state, 1);
  context_release(c);
  return s;
}

/* ---- Mapped ---- */

static void check_map(void *arg) {
  read_job *j = arg;
  builder b = context_builder(j->contents.c);
  uint64_t count;
  if (!dims_static_count(j->contents.t->node, &count))
    diag_raise(b.diag, TN_ERR_SHAPE,
               "the tensor's sizes vary, so that it has a value in runs of a plan only");
}

static tn_status show_memory(contents *k, tn_array *array) {
  tn_context *c = k->c;
  tn_span span;
  tn_status s = buffer_span(graph_input_of(c, k->node)->memory, &span, &c->diag);
  if (s != TN_OK) return s;
  void *at = span_host_pointer(&span);
  if (!at)
    return diag_set(&c->diag, TN_ERR_UNSUPPORTED,
                    "the host cannot address the memory of device %s: use tn_read",
                    span.device->name);
  tn_type type = {(tn_dtype)k->node->dtype, {(int32_t)k->node->rank, {0}}};
  for (size_t i = 0; i < k->node->rank; i++) type.shape.size[i] = node_int(k->node->dims[i]);
  *array = (tn_array){at, type};
  return TN_OK;
}

/** Keeps the mapped BUFFER of a weak scalar or of a movement with the handle, until it is mapped
    again or freed. */
static void keep_mapped(contents *k) {
  if (k->t->node == k->node || k->t->mapped == k->node || k->is_whole_state) return;
  ir_release(k->c->ir, k->t->mapped);
  k->t->mapped = ir_retain(k->node);
}

tn_status tn_map(tn_tensor *t, tn_array *array) {
  if (array) *array = (tn_array){0};
  if (!t) return TN_ERR_ARGUMENT;
  tn_context *c = t->context;
  tn_status s = context_acquire_valid(c);
  if (s != TN_OK) return s;
  read_job j = {.contents = {.c = c, .t = t}};
  s = handle_check(c, t, "map");
  if (s == TN_OK) {
    s = realize_sizes(&j.contents);
    if (s == TN_OK)
      s = array ? diag_catch(&c->diag, check_map, &j)
                : diag_set(&c->diag, TN_ERR_ARGUMENT, "the place for the array is NULL");
    if (s == TN_OK) s = realize_contents(&j.contents);
    if (s == TN_OK) s = show_memory(&j.contents, array);
    if (s == TN_OK) keep_mapped(&j.contents);
    if (s != TN_OK) context_fail(c, "map", &t, 1);
    ir_release(c->ir, j.contents.node);
  }
  context_release(c);
  return s;
}
