/* Verifies linear programs: walks the instruction list once with the stack of open loops; an
   instruction may use what is listed above it in a loop that is still open. Around a barrier all
   workers of a group run equal numbers of iterations. */
#include "base/vec.h"
#include "ir/core/uniform.h"
#include "ir/verify/verifier.h"

/** The position of an instruction in the list. */
typedef struct place {
  const node *loop; /* the RANGE of the innermost loop around it; NULL: none */
  bool open;        /* a RANGE whose END has not come yet */
} place;

/** The list as far as it is checked. */
typedef struct program {
  verifier *v;
  map listed;      /* instruction → place */
  map ordered;     /* AFTER nodes whose effects were checked */
  node_list loops; /* RANGEs of the open loops, outermost first */
  uniformity facts;
} program;

static bool is_listed_op(const node *n) {
  switch (n->op) {
  case OP_RANGE:
  case OP_END:
  case OP_ALLOC:
  case OP_LOAD:
  case OP_STORE:
  case OP_PREFETCH:
  case OP_BARRIER:
  case OP_WAIT:
  case OP_SPECIAL: return true;
  default: return op_is_elementwise((op)n->op);
  }
}

/** True if the instruction is listed and the loop around it is open. */
static bool in_scope(const program *p, const node *n) {
  const place *at = map_get(&p->listed, n);
  const place *loop = at && at->loop ? map_get(&p->listed, at->loop) : NULL;
  return at && (!at->loop || loop->open);
}

/** The effects that a node waits for, its sources from 1 on, are listed. */
static void check_awaited_effects(program *p, const node *user, const node *n) {
  for (uint32_t i = 1; i < n->n_src; i++) {
    bool fine = n->src[i]->op == OP_RANGE ? in_scope(p, n->src[i]) : map_has(&p->listed, n->src[i]);
    if (!fine && n->src[i]->op != OP_AFTER)
      verify_fail(p->v, user, n->src[i], "an effect to wait for is not listed above");
  }
}

/** The storage below AFTER nodes, whose effects are checked to be listed. */
static const node *check_order(program *p, const node *user, const node *n) {
  for (; n->op == OP_AFTER; n = n->src[0]) {
    if (map_has(&p->ordered, n)) continue;
    map_set(&p->v->work, &p->ordered, n, NULL);
    check_awaited_effects(p, user, n);
  }
  return n;
}

static void close_loop(program *p, const node *end) {
  if (!p->loops.n || vec_last(&p->loops) != end->src[0])
    verify_fail(p->v, end, end->src[0], "the loop that ends is not the innermost open one");
  check_awaited_effects(p, end, end);
  place *loop = map_get(&p->listed, vec_pop(&p->loops));
  loop->open = false;
}

static void check_barrier(program *p, const node *barrier) {
  p->facts.a = &p->v->work;
  for (size_t i = 0; i < p->loops.n; i++)
    if (!uniform_size(&p->facts, p->loops.at[i]->src[0]))
      verify_fail(p->v, barrier, p->loops.at[i], "workers part in a loop around a barrier");
}

static void check_instruction(program *p, const node *n) {
  arena *a = &p->v->work;
  if (!is_listed_op(n)) verify_fail(p->v, n, NULL, "a linear program does not list this op");
  if (map_has(&p->listed, n)) verify_fail(p->v, n, NULL, "the instruction is listed twice");
  if (n->op == OP_BARRIER) check_barrier(p, n);
  if (n->op == OP_END)
    close_loop(p, n);
  else
    for (uint32_t i = 0; i < n->n_src; i++) {
      const node *s = check_order(p, n, n->src[i]);
      if (s->op == OP_CONST || s->op == OP_PARAM || s->op == OP_VAR || s->op == OP_INVALID)
        continue;
      if (!map_has(&p->listed, s)) verify_fail(p->v, n, s, "a source is not listed above");
      if (!in_scope(p, s)) verify_fail(p->v, n, s, "a source belongs to a loop that has ended");
    }
  if (n->op == OP_RANGE) vec_push(a, &p->loops, n);
  place *at = arena_alloc(a, sizeof *at);
  *at = (place){.loop = p->loops.n ? vec_last(&p->loops) : NULL, .open = n->op == OP_RANGE};
  map_set(a, &p->listed, n, at);
}

/** The ALLOC of registers that a storage operand stands for; NULL for other storage. `known`
    remembers the storage of AFTERs, whose sources come first. */
static const node *register_alloc(verifier *v, map *known, const node *n) {
  const node *base = n->op == OP_AFTER ? map_get(known, n->src[0]) : n;
  map_set(&v->work, known, n, (void *)base);
  return base->op == OP_ALLOC && base->ints[1] == 0 ? base : NULL;
}

static void check_register_access(verifier *v, const node *n, const node *alloc) {
  const node *address = n->src[1];
  unsigned lanes = n->op == OP_LOAD ? n->lanes : n->src[2]->lanes;
  if (address->op != OP_CONST) verify_fail(v, n, alloc, "registers are addressed by constants");
  if (alloc->src[0]->op != OP_CONST)
    verify_fail(v, alloc, NULL, "the number of registers is a constant");
  if (node_int(address) < 0 || node_int(address) >= node_int(alloc->src[0]))
    verify_fail(v, n, alloc, "there is no such register");
  if (lanes != alloc->lanes) verify_fail(v, n, alloc, "a register has other lanes");
}

static void check_registers(verifier *v) {
  map known = {0};
  for (size_t i = 0; i < v->order.n; i++) {
    const node *n = v->order.at[i];
    if (n->op == OP_ALLOC && n->ints[1] != SPACE_REGISTER && n->lanes != 1)
      verify_fail(v, n, NULL, "scratch memory holds scalars");
    if (n->op == OP_PARAM || n->op == OP_ALLOC || n->op == OP_AFTER) register_alloc(v, &known, n);
    if (n->op != OP_LOAD && n->op != OP_STORE) continue;
    const node *alloc = register_alloc(v, &known, n->src[0]);
    if (alloc) check_register_access(v, n, alloc);
  }
}

void verify_linear(verifier *v) {
  check_registers(v);
  for (size_t i = 0; i < v->order.n; i++) {
    const node *linear = v->order.at[i];
    program p = {.v = v};
    if (linear->op != OP_LINEAR) continue;
    for (uint32_t k = 0; k < linear->n_src; k++) check_instruction(&p, linear->src[k]);
    if (p.loops.n) verify_fail(v, linear, vec_last(&p.loops), "a loop does not end");
  }
}
