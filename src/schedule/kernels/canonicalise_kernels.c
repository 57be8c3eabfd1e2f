/* Canonicalises kernels: numbers PARAMs (array arguments) by position among the step's buffers,
   ranges by order and lifted variables by first use, and widens the bound of the loop trip variable
   where nothing else depends on it. By hash consing equal kernels become the same node, which is
   compiled once. */
#include "schedule/kernels/canonicalise_kernels.h"

#include "ir/core/binder.h"
#include "ir/core/var_names.h"
#include "ir/text/sink_text.h"
#include "ir/transform/liftable_scalars.h"
#include "ir/transform/substitute.h"
#include "schedule/kernels/kernel_buffers.h"

#include <string.h>

typedef struct canonical {
  ir *g;
  arena *a;              /* of the walk */
  map image;             /* node → its canonical form */
  const size_t *buffers; /* of the step */
  node_list scalars;     /* lifted variables, in the order of first use */
  map indices;           /* nodes read other than by a CAST */
  map numbers;           /* id of a range + 1 → its new number */
  int64_t ranges;        /* ranges numbered so far */
} canonical;

/* Loops of any length share a kernel if it reads the trip variable only as a number (by CAST). */

enum { MOST_TRIP = INT32_MAX / 4 }; /* fits in narrow indices */

static void find_index_uses(canonical *r, const node_list *order) {
  for (size_t i = 0; i < order->n; i++)
    for (uint32_t k = 0; k < order->at[i]->n_src && order->at[i]->op != OP_CAST; k++)
      map_set(r->a, &r->indices, order->at[i]->src[k], NULL);
}

static const node *widen_trip(const canonical *r, const node *var) {
  static const int64_t bounds[] = {0, MOST_TRIP};
  if (!var_is_trip(var->text) || map_has(&r->indices, var) || var->ints[1] > MOST_TRIP) return var;
  return ir_make(r->g, &(node_spec){.op = OP_VAR,
                                    .dtype = DT_INDEX,
                                    .ints = bounds,
                                    .n_int = 2,
                                    .text = var->text,
                                    .n_text = var->n_text});
}

/** The new id of a kernel's range, or of one that a law makes: those come after. */
static int64_t number_range(void *user, int64_t id) {
  canonical *r = user;
  const void *key = (const void *)(uintptr_t)(id + 1);
  if (!map_has(&r->numbers, key)) map_set(r->a, &r->numbers, key, (void *)(uintptr_t)r->ranges++);
  return (int64_t)(uintptr_t)map_get(&r->numbers, key);
}

static const node *renumber_schedule(canonical *r, const node *sink) {
  size_t bytes;
  const char *lines = sink_schedule(sink, &bytes);
  if (!lines) return sink;
  lines = sink_schedule_rename_ranges(r->a, lines, bytes, number_range, r);
  return sink_with_schedule(r->g, sink, lines, strlen(lines));
}

/** True for a variable whose value a kernel gets by position: a lifted scalar, or a trip number. */
static bool is_lifted(const char *text) {
  return lifted_var_number(text, LIFTED_VAR_OF_GRAPH) != SIZE_MAX || var_is_trip(text);
}

static const node *canonical_node(canonical *r, const node *n) {
  const node **src = arena_alloc(r->a, n->n_src * sizeof *src);
  for (uint32_t i = 0; i < n->n_src; i++) src[i] = map_get(&r->image, n->src[i]);
  if (n->op == OP_PARAM) {
    int64_t slot = (int64_t)kernel_buffer_position(r->buffers, SIZE_MAX, (size_t)n->ints[0]);
    return ir_node(r->g, OP_PARAM, (dtype)n->dtype, src, n->n_src, &slot, 1);
  }
  if (n->op == OP_RANGE) {
    int64_t ints[] = {number_range(r, n->ints[0]), n->ints[1], n->ints[2], n->ints[3]};
    return ir_node(r->g, OP_RANGE, DT_INDEX, src, 1, ints, 4);
  }
  if (n->op == OP_VAR && is_lifted(n->text)) {
    vec_push(ir_arena(r->g), &r->scalars, n);
    return lifted_var_rename(r->g, widen_trip(r, n), LIFTED_VAR_OF_KERNEL, r->scalars.n - 1);
  }
  const node *made = subst_rebuild(r->g, n, src);
  return n->op == OP_SINK ? renumber_schedule(r, made) : made;
}

static void canonicalise_kernel(ir *g, schedule_step *step) {
  canonical r = {.g = g, .a = ir_scratch(g), .buffers = step->buffers};
  arena_mark here = arena_save(r.a);
  node_list order = topo_sort(r.a, &step->kernel, 1, NULL, NULL);
  find_index_uses(&r, &order);
  for (size_t i = 0; i < order.n; i++)
    map_set(r.a, &r.image, order.at[i], (void *)canonical_node(&r, order.at[i]));
  step->kernel = map_get(&r.image, step->kernel);
  step->scalars = r.scalars;
  arena_rewind(r.a, here);
}

void kernels_canonicalise(ir *g, schedule *s) {
  for (size_t i = 0; i < s->steps.n; i++) {
    if (s->steps.at[i].kernel) canonicalise_kernel(g, &s->steps.at[i]);
  }
}
