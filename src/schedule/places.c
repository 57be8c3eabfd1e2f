/* Which values are written down. A value is one unless it is a leaf, an index expression or a
   movement; it is written down where it is a root, a reduction, an effect, used more than once,
   where its elements are read again and again and are no trifle to compute, or where its kernel
   would grow past the caps. What an effect reads whole is written down too. */
#include "schedule/passes.h"

enum {
  MOST_OPS = 200,     /* in a kernel, before its value is written down */
  TRIFLE = 6,         /* ops that are rather repeated than written down and loaded */
  MOST_ARGUMENTS = 24 /* buffers that a kernel reads */
};

typedef struct facts {
  uint32_t readers;   /* values that read this one, through movements */
  uint32_t ops;       /* nodes that reading this value adds to a kernel */
  uint32_t arguments; /* buffers that it adds */
  uint32_t weight;    /* ops to compute an element if nothing else is written down */
  bool expands;       /* a movement of an EXPAND: the same element at several places */
  bool repeated;      /* its elements are read more than once, through an EXPAND */
} facts;

typedef struct placing {
  arena *a;
  places *out;
  map facts; /* node → facts */
  uint32_t most_arguments;
} placing;

static bool is_value(const node *n) { return n->dtype != DT_INDEX && n->dtype != DT_VOID; }

static facts *facts_of(placing *p, const node *n) {
  facts *f = map_get(&p->facts, n);
  if (f) return f;
  f = arena_calloc(p->a, 1, sizeof *f);
  map_set(p->a, &p->facts, n, f);
  return f;
}

static void cut(placing *p, const node *n) {
  facts *f = facts_of(p, n);
  f->ops = 1;
  f->arguments = 1;
  if (n->op == OP_PARAM || map_has(&p->out->is_cut, n)) return;
  map_set(p->a, &p->out->is_cut, n, (void *)n);
}

/** Movements pass a reader on to what they move; constants and counters are free to repeat. */
static bool passes_on(const node *n) { return op_is_movement((op)n->op); }
static bool is_free(const node *n) {
  return n->op == OP_CONST || n->op == OP_IOTA || n->op == OP_PARAM;
}

/** A value that starts a kernel of its own whatever else. */
static bool is_always_cut(const node *n) {
  return n->op == OP_REDUCE || n->op == OP_SET || n->op == OP_CUSTOM;
}

/** From inputs to outputs: what computing an element takes, if nothing but what must be is written
    down. */
static void weigh(placing *p, const node *n) {
  facts *f = facts_of(p, n);
  f->expands = n->op == OP_EXPAND || (passes_on(n) && facts_of(p, n->src[0])->expands);
  f->weight = passes_on(n) || is_free(n) ? 0 : 1;
  for (uint32_t i = 0; i < n->n_src && !is_always_cut(n); i++)
    if (!map_has(&p->out->is_cut, n->src[i])) f->weight += facts_of(p, n->src[i])->weight;
  if (f->weight > MOST_OPS) f->weight = MOST_OPS;
}

/** What n tells its k-th source: that it reads it, and whether again and again. A movement hands
    its own readers on. */
static void tell(placing *p, const node *n, uint32_t k) {
  const node *s = n->src[k];
  if (!is_value(s) || (k && s == n->src[k - 1])) return;
  const facts *own = facts_of(p, n);
  bool inside = !map_has(&p->out->is_cut, n), moves = passes_on(n) && inside && k == 0;
  facts *f = facts_of(p, s);
  f->readers += moves ? own->readers : 1;
  f->repeated |= n->op == OP_EXPAND || (inside && !is_always_cut(n) && own->repeated);
}

/** From outputs to inputs: readers; and what is repeated and no trifle is written down, so that
    what is behind it is not repeated. It is written as it is read, movements included, but each
    element once. */
static void count_readers(placing *p, const node_list *order) {
  for (size_t i = order->n; i-- > 0;) {
    const node *n = order->at[i];
    if (!is_value(n)) continue;
    const facts *f = facts_of(p, n);
    if (f->repeated && f->weight > TRIFLE && !f->expands) cut(p, n);
    for (uint32_t k = 0; k < n->n_src; k++) tell(p, n, k);
  }
}

/** A CUSTOM reads its inputs as whole arrays, and so does a SET the array it changes. */
static void cut_operands(placing *p, const normalised *in, const node *n) {
  if (map_has(&in->copies, n)) cut(p, n);
  size_t whole = n->op == OP_CUSTOM ? (size_t)n->ints[2] : n->op == OP_SET ? 1 : 0;
  for (size_t i = 0; i < whole; i++) cut(p, n->src[i]);
}

/** The source that weighs most in a kernel, if it is not written down already. */
static const node *heaviest(placing *p, const node *n) {
  const node *best = NULL;
  for (uint32_t i = 0; i < n->n_src; i++) {
    const node *s = n->src[i];
    if (!is_value(s) || s->op == OP_PARAM || map_has(&p->out->is_cut, s)) continue;
    const facts *f = facts_of(p, s), *b = best ? facts_of(p, best) : NULL;
    if (!b || f->arguments > b->arguments || (f->arguments == b->arguments && f->ops > b->ops))
      best = s;
  }
  return best;
}

static void add_up(placing *p, const node *n) {
  facts *f = facts_of(p, n);
  f->ops = passes_on(n) ? 0 : 1;
  f->arguments = 0;
  for (uint32_t i = 0; i < n->n_src; i++) {
    const facts *s = facts_of(p, n->src[i]);
    f->ops += s->ops;
    f->arguments += s->arguments;
  }
}

/** What a kernel that computes n would be; sources are written down until it is small enough. */
static void fit(placing *p, const node *n) {
  const facts *f = facts_of(p, n);
  for (add_up(p, n); f->ops > MOST_OPS || f->arguments > p->most_arguments; add_up(p, n)) {
    const node *s = heaviest(p, n);
    if (!s) return;
    cut(p, s);
  }
}

static bool wants_cut(const node *n, const facts *f) {
  return is_always_cut(n) || (!passes_on(n) && !is_free(n) && f->readers > 1);
}

static void decide(placing *p, const node *n) {
  if (!is_value(n)) return;
  fit(p, n);
  if (n->op == OP_PARAM || map_has(&p->out->is_cut, n) || wants_cut(n, facts_of(p, n))) cut(p, n);
}

/** The chain of movements of a SET ends at the array it changes and is no value of its own. */
static bool enters(const node *n, void *user) {
  (void)user;
  return n->dtype != DT_INDEX;
}

void schedule_places(ir *g, const schedule_request *r, const normalised *in, places *out) {
  *out = (places){0};
  placing p = {.a = ir_arena(g), .out = out, .most_arguments = MOST_ARGUMENTS};
  if (r->arguments && r->arguments - 1 < p.most_arguments)
    p.most_arguments = (uint32_t)r->arguments - 1;
  node_list order = topo_sort(p.a, in->roots, r->n_roots, enters, NULL);
  for (size_t i = 0; i < order.n; i++) cut_operands(&p, in, order.at[i]);
  for (size_t i = 0; i < r->n_roots; i++)
    map_set(p.a, &out->is_cut, in->roots[i], (void *)in->roots[i]);
  for (size_t i = 0; i < order.n; i++) weigh(&p, order.at[i]);
  count_readers(&p, &order);
  for (size_t i = 0; i < order.n; i++) decide(&p, order.at[i]);
  for (size_t i = 0; i < order.n; i++)
    if (map_has(&out->is_cut, order.at[i])) vec_push(p.a, &out->cuts, order.at[i]);
}
