/* Implements the IR's public C interface (tenon/unstable/ir.h): wraps parsing, printing, making and
   interpreting nodes, and turns raised failures into statuses and messages. */
#include "ir/core/build.h"
#include "ir/core/check_node.h"
#include "ir/interp/interp.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"

#include <string.h>
#include <tenon/unstable/ir.h>

enum { MOST_SLOTS = 1 << 16 };

/** Allocator and diag of a tn_ir, which is found again from the address of its diag. */
typedef struct ir_home {
  mem mem;
  diag diag;
} ir_home;

static ir_home *home_of(const tn_ir *ir) {
  return (ir_home *)((char *)ir_diag(ir) - offsetof(ir_home, diag));
}

tn_status tn_ir_open(const tn_allocator *allocator, tn_ir **out) {
  if (!out) return TN_ERR_ARGUMENT;
  *out = NULL;
  mem m = mem_system;
  if (allocator && allocator->alloc)
    m = (mem){allocator->alloc, allocator->release, allocator->user};
  ir_home *h = mem_calloc(&m, 1, sizeof *h);
  if (!h) return TN_ERR_MEMORY;
  h->mem = m;
  *out = ir_new(&h->mem, &h->diag, false);
  if (*out) return TN_OK;
  mem_free(&m, h, sizeof *h);
  return TN_ERR_MEMORY;
}

void tn_ir_close(tn_ir *ir) {
  if (!ir) return;
  ir_home *h = home_of(ir);
  ir_free(ir);
  mem m = h->mem;
  mem_free(&m, h, sizeof *h);
}

const char *tn_ir_message(const tn_ir *ir) { return ir ? ir_diag(ir)->text : "there is no IR"; }

tn_status tn_ir_status(const tn_ir *ir) { return ir ? ir_diag(ir)->status : TN_ERR_ARGUMENT; }

/* Text. */

typedef struct parsing {
  tn_ir *ir;
  const char *text;
  size_t bytes;
  tn_node root;
} parsing;

static void parse_root(void *arg) {
  parsing *p = arg;
  node_list roots = parse_graph(p->ir, ir_arena(p->ir), p->text, p->bytes);
  if (roots.n != 1)
    diag_raise(ir_diag(p->ir), TN_ERR_FORMAT, "the text returns %zu nodes, not one", roots.n);
  p->root = roots.at[0];
}

tn_node tn_ir_parse(tn_ir *ir, const char *text, size_t bytes) {
  if (!ir || (!text && bytes)) return NULL;
  parsing p = {ir, text, bytes, NULL};
  return diag_catch(ir_diag(ir), parse_root, &p) ? NULL : p.root;
}

typedef struct printing {
  str text;
  tn_node root;
} printing;

static void print_root(void *arg) {
  printing *p = arg;
  print_graph(&p->text, &p->root, 1);
}

const char *tn_ir_print(tn_ir *ir, tn_node root) {
  if (!ir || !root) return NULL;
  printing p = {str_new(ir_arena(ir)), root};
  return diag_catch(ir_diag(ir), print_root, &p) ? NULL : str_text(&p.text);
}

/* Making nodes. */

typedef struct making {
  tn_ir *ir;
  const tn_node_desc *desc;
  tn_node made;
} making;

static void make_node(void *arg) {
  making *m = arg;
  const tn_node_desc *n = m->desc;
  diag *d = ir_diag(m->ir);
  bool known;
  node_spec s = {.op = op_from_name(n->op, strlen(n->op)),
                 .dtype = dtype_from_name(n->type, strlen(n->type), &known),
                 .lanes = (uint16_t)n->lanes,
                 .src = n->sources,
                 .n_src = n->n_sources,
                 .ints = n->ints,
                 .n_int = n->n_ints,
                 .text = n->text,
                 .n_text = n->n_text};
  if (s.op == OP_LIMIT) diag_raise(d, TN_ERR_ARGUMENT, "there is no op \"%s\"", n->op);
  if (!known) diag_raise(d, TN_ERR_ARGUMENT, "there is no type \"%s\"", n->type);
  if (n->lanes < 1 || n->lanes > UINT16_MAX)
    diag_raise(d, TN_ERR_ARGUMENT, "a node cannot have %d lanes", (int)n->lanes);
  const char *wrong = ir_check_spec(&s);
  if (wrong) diag_raise(d, TN_ERR_ARGUMENT, "%s: %s", n->op, wrong);
  m->made = ir_make(m->ir, &s);
}

static bool is_complete(const tn_node_desc *n) {
  if (!n || n->size != sizeof *n || !n->op || !n->type) return false;
  if ((n->n_sources && !n->sources) || (n->n_ints && !n->ints) || (n->n_text && !n->text))
    return false;
  for (size_t i = 0; i < n->n_sources; i++)
    if (!n->sources[i]) return false;
  return true;
}

tn_node tn_ir_make(tn_ir *ir, const tn_node_desc *desc) {
  if (!ir || !is_complete(desc)) return NULL;
  making m = {ir, desc, NULL};
  return diag_catch(ir_diag(ir), make_node, &m) ? NULL : m.made;
}

/* Reading nodes. */

const char *tn_node_op(tn_node n) { return n ? op_name((op)n->op) : ""; }
const char *tn_node_type(tn_node n) { return n ? dtype_name((dtype)n->dtype) : ""; }
int32_t tn_node_lanes(tn_node n) { return n ? n->lanes : 0; }

size_t tn_node_sources(tn_node n, const tn_node **sources) {
  *sources = n ? n->src : NULL;
  return n ? n->n_src : 0;
}

size_t tn_node_ints(tn_node n, const int64_t **ints) {
  *ints = n ? n->ints : NULL;
  return n ? n->n_int : 0;
}

size_t tn_node_text(tn_node n, const char **text) {
  *text = n ? n->text : "";
  return n ? n->n_text : 0;
}

/* Executing linear programs. */

typedef struct running {
  arena arena;
  tn_node linear;
  const tn_ir_buffer *buffers;
  size_t n_buffers;
  interp_array *params;
  size_t n_params;
} running;

/** Gives the buffers the types of their PARAMs. */
static void set_types(running *r) {
  node_list order = topo_sort(&r->arena, &r->linear, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    if (n->op == OP_PARAM && n->ints[0] >= 0 && (size_t)n->ints[0] < r->n_params)
      r->params[n->ints[0]].dtype = (dtype)n->dtype;
  }
}

/** Lists the buffers by slot. */
static void list_params(void *arg) {
  running *r = arg;
  for (size_t i = 0; i < r->n_buffers; i++) {
    int64_t slot = r->buffers[i].slot;
    if (slot < 0 || slot >= MOST_SLOTS)
      diag_raise(r->arena.diag, TN_ERR_ARGUMENT, "there is no slot %lld", (long long)slot);
    if ((size_t)slot >= r->n_params) r->n_params = (size_t)slot + 1;
  }
  r->params = arena_calloc(&r->arena, r->n_params, sizeof *r->params);
  for (size_t i = 0; i < r->n_buffers; i++) {
    interp_array *p = &r->params[r->buffers[i].slot];
    p->data = r->buffers[i].data;
    p->bytes = r->buffers[i].bytes;
  }
  set_types(r);
}

/** A run by one worker, or in teams. */
typedef struct launch {
  int64_t core_id, core_count;
  const tn_ir_teams *teams; /* NULL: one worker */
} launch;

static tn_status run_launch(const interp_env *e, tn_node linear, const launch *by, const mem *m,
                            diag *d) {
  const tn_ir_teams *t = by->teams;
  if (!t) return interp_linear(e, linear, by->core_id, by->core_count, m, d);
  interp_teams teams = {t->groups, t->workers, t->warp, t->seed};
  return interp_linear_in_teams(e, linear, &teams, m, d);
}

static tn_status execute(tn_ir *ir, tn_node linear, const tn_ir_buffer *buffers, size_t n_buffers,
                         const tn_ir_value *values, size_t n_values, const launch *by) {
  if (!ir || !linear || (n_buffers && !buffers) || (n_values && !values)) return TN_ERR_ARGUMENT;
  diag *d = ir_diag(ir);
  running r = {.linear = linear, .buffers = buffers, .n_buffers = n_buffers};
  arena_init(&r.arena, ir_mem(ir), d);
  tn_status status = diag_catch(d, list_params, &r);
  interp_var *vars = mem_calloc(ir_mem(ir), n_values, sizeof *vars);
  if (!status && !vars) status = diag_set(d, TN_ERR_MEMORY, "out of memory");
  for (size_t i = 0; i < n_values && vars; i++)
    vars[i] = (interp_var){values[i].name, values[i].value};
  interp_env e = {.params = r.params, .n_params = r.n_params, .vars = vars, .n_vars = n_values};
  if (!status) status = run_launch(&e, linear, by, ir_mem(ir), d);
  mem_free(ir_mem(ir), vars, n_values * sizeof *vars);
  arena_free(&r.arena);
  return status;
}

tn_status tn_ir_execute(tn_ir *ir, tn_node linear, const tn_ir_buffer *buffers, size_t n_buffers,
                        const tn_ir_value *values, size_t n_values, int64_t core_id,
                        int64_t core_count) {
  launch by = {.core_id = core_id, .core_count = core_count};
  return execute(ir, linear, buffers, n_buffers, values, n_values, &by);
}

tn_status tn_ir_execute_in_teams(tn_ir *ir, tn_node linear, const tn_ir_buffer *buffers,
                                 size_t n_buffers, const tn_ir_value *values, size_t n_values,
                                 const tn_ir_teams *teams) {
  launch by = {.teams = teams};
  if (!teams || teams->size != sizeof *teams) return TN_ERR_ARGUMENT;
  bool is_valid = teams->groups >= 0 && teams->workers >= 1 && teams->warp >= 1;
  bool is_small = teams->groups <= INT32_MAX && teams->workers <= INT32_MAX;
  if (!is_valid || !is_small || teams->warp > INT32_MAX) return TN_ERR_ARGUMENT;
  return execute(ir, linear, buffers, n_buffers, values, n_values, &by);
}
