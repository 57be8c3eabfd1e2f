/* Implements the devices of tensors that are anybody's. A set of devices is found for each, from
   the roots down: those that read it. The first device of a set keeps the node. For the others a
   copy is made of what computes elements, over TOs of its leaves: a TO of a tensor that is
   anybody's has the same elements and moves nothing, but is a node of its own, on a device. What a
   step of its own computes, as a loop does, is computed once, on the graph's own device, and moved
   from there. */
#include "schedule/devices/resolve_devices.h"

#include "ir/core/build.h"
#include "ir/core/node_device.h"
#include "ir/core/tensor_loop.h"
#include "ir/transform/element_expression.h"
#include "ir/transform/substitute.h"
#include "schedule/values/value.h"

_Static_assert(IR_MAX_DEVICES <= 32, "a set of devices is a uint32_t");

typedef struct resolution {
  ir *g;
  arena *a;
  node_list order;
  uint32_t *needed; /* of each node of the order: the devices that need it */
  bool *is_array;   /* likewise: it is computed, or needed as a whole array, or its sources are */
  map number;       /* node → its position in the order + 1 */
  map image;        /* node that changed → its image */
  map copies;       /* node → const node *[IR_MAX_DEVICES]: on other devices than its first */
} resolution;

static size_t number_of(const resolution *r, const node *n) {
  return (size_t)(uintptr_t)map_get(&r->number, n) - 1;
}

/** True for a tensor, not a size, that no device has. */
static bool is_anybodys(const node *n) {
  return !n->device && n->dtype != DT_INDEX && n->dtype != DT_VOID;
}

/** True for what is computed once, whoever needs it. */
static bool is_opaque(const node *n) {
  return !n->free->n && (n->op == OP_CUSTOM || n->op == OP_KERNEL || n->op == OP_RESULT);
}

/** The number of first operands that a node reads as whole arrays: of a loop, the initial values.
 */
static size_t whole_operands(const node *n) {
  return n->op == OP_LOOP ? 1 + loop_n_states(n) : value_whole_operands(n);
}

static size_t first_device(uint32_t devices) { return (size_t)__builtin_ctz(devices); }

/** Finds the devices that need each tensor which is anybody's. */
static void find_needed(resolution *r, const normalised *n) {
  for (size_t i = 0; i < n->n_roots; i++) {
    size_t at = number_of(r, n->roots[i]);
    r->needed[at] |= UINT32_C(1) << n->device;
    r->is_array[at] = true;
  }
  for (size_t i = r->order.n; i-- > 0;) {
    const node *at = r->order.at[i];
    if (at->dtype == DT_INDEX) continue; /* the host computes sizes, conditions in them included */
    uint32_t devices = at->device      ? UINT32_C(1) << (at->device - 1)
                       : is_opaque(at) ? UINT32_C(1) << n->device
                                       : r->needed[i];
    for (uint32_t k = 0; k < at->n_src; k++) {
      size_t s = number_of(r, at->src[k]);
      r->needed[s] |= devices;
      r->is_array[s] |= k < whole_operands(at);
    }
  }
}

static void find_arrays(resolution *r) {
  for (size_t i = 0; i < r->order.n; i++) {
    const node *n = r->order.at[i];
    bool moves = op_is_movement((op)n->op) && n->op != OP_GATHER;
    r->is_array[i] |= !moves && n->op != OP_CONST && n->op != OP_IOTA && n->op != OP_CARRY;
    for (uint32_t k = 0; k < n->n_src; k++)
      r->is_array[i] |= is_anybodys(n->src[k]) && r->is_array[number_of(r, n->src[k])];
  }
}

/** The node that readers on a device take in place of a source. */
static const node *image_on(const resolution *r, const node *n, size_t device) {
  const node *image = map_get(&r->image, n);
  const node *const *copies = is_anybodys(n) ? map_get(&r->copies, n) : NULL;
  if (copies && copies[device]) return copies[device];
  return image ? image : n;
}

/** A node over the images of its sources on a device. */
static const node *rebuild_on(resolution *r, const node *n, size_t device) {
  const node **src = arena_alloc(r->a, (n->n_src + 1) * sizeof *src);
  bool changed = false;
  for (uint32_t i = 0; i < n->n_src; i++) {
    src[i] = image_on(r, n->src[i], device);
    changed |= src[i] != n->src[i];
  }
  if (n->op == OP_TO && src[0]->device == n->device) return src[0];
  return changed ? subst_rebuild(r->g, n, src) : n;
}

/** A TO; `from` SIZE_MAX: the elements are computed on the device. */
static const node *to_device(ir *g, const node *n, size_t device, size_t from) {
  int64_t ints[] = {(int64_t)device, (int64_t)from};
  return ir_node(g, OP_TO, (dtype)n->dtype, &n, 1, ints, from == SIZE_MAX ? 1 : 2);
}

/** Makes the copies of a tensor for devices other than the one on which it stays. */
static void make_copies(resolution *r, const node *n, uint32_t devices, size_t own) {
  const node **copies = arena_calloc(r->a, IR_MAX_DEVICES, sizeof *copies);
  const node *made = is_opaque(n) ? rebuild_on(r, n, own) : NULL;
  for (uint32_t rest = devices & ~(UINT32_C(1) << own); rest; rest &= rest - 1) {
    size_t d = first_device(rest);
    copies[d] = made                    ? to_device(r->g, made, d, own)
                : element_is_of_leaf(n) ? to_device(r->g, n, d, SIZE_MAX)
                                        : rebuild_on(r, n, d);
  }
  map_set(r->a, &r->copies, n, copies);
}

/** The device on which a node stays. */
static size_t own_device(const resolution *r, size_t i, size_t otherwise) {
  const node *n = r->order.at[i];
  if (n->device) return n->device - 1u;
  return r->needed[i] && !is_opaque(n) ? first_device(r->needed[i]) : otherwise;
}

/** True if a tensor that is anybody's is needed on another device than its own. */
static bool is_split(const resolution *r, size_t i, size_t otherwise) {
  if (!is_anybodys(r->order.at[i])) return false;
  return r->needed[i] & ~(UINT32_C(1) << own_device(r, i, otherwise));
}

/** True if a tensor that is computed, as an array of its own, is needed on several devices. */
static bool any_is_split(const resolution *r, size_t otherwise) {
  for (size_t i = 0; i < r->order.n; i++)
    if (is_split(r, i, otherwise) && r->is_array[i]) return true;
  return false;
}

static void rebuild(resolution *r, size_t i, size_t otherwise) {
  const node *n = r->order.at[i];
  if (n->dtype == DT_INDEX) return;
  size_t own = own_device(r, i, otherwise);
  if (is_split(r, i, otherwise)) make_copies(r, n, r->needed[i], own);
  const node *made = rebuild_on(r, n, own);
  if (made != n) map_set(r->a, &r->image, n, (void *)made);
}

static const node *image_of_root(const resolution *r, const node *n) {
  const node *image = map_get(&r->image, n);
  return image ? image : n;
}

void resolve_devices(ir *g, const schedule_request *q, normalised *n) {
  if (!ir_has_devices(g)) return;
  resolution r = {.g = g, .a = ir_arena(g)};
  size_t all = n->n_roots + q->n_labels;
  r.order = topo_sort(r.a, n->roots, all, NULL, NULL);
  r.needed = arena_calloc(r.a, r.order.n + 1, sizeof *r.needed);
  r.is_array = arena_calloc(r.a, r.order.n + 1, sizeof *r.is_array);
  for (size_t i = 0; i < r.order.n; i++)
    map_set(r.a, &r.number, r.order.at[i], (void *)(uintptr_t)(i + 1));
  find_needed(&r, n);
  find_arrays(&r);
  if (!any_is_split(&r, n->device)) return;
  for (size_t i = 0; i < r.order.n; i++) rebuild(&r, i, n->device);
  for (size_t i = 0; i < all; i++) n->roots[i] = image_of_root(&r, n->roots[i]);
}
