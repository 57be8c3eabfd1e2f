/* Implements proofs of a ≥ 0, a ≤ b and a < b for index expressions: replaces terms of the
   difference by lower bounds or their sides, from the innermost range outwards, until interval
   bounds decide or the steps run out. */
#include "ir/index/index_proof.h"

#include "ir/core/affine.h"
#include "ir/core/shape_inference.h"
#include "ir/index/affine_form.h"

enum { PROOF_STEPS = 48 };

/* Proof of f ≥ 0 by replacement: while the bounds of f do not decide, one term is replaced by a
   lower bound of it, or a minimum, a maximum or a choice by its sides. Inner ranges are replaced
   first, because extents of inner ranges may contain outer ranges and never the other way round; so
   one order suffices, and only terms of two sides branch:
   - c·min(a, b), c < 0, and c·max(a, b), c > 0: f ≥ 0 with either side is enough;
   - the other signs, and c·where(p, a, b): f ≥ 0 with both sides is needed. */

typedef struct proof {
  ir *g;
  int steps_left; /* replacements */
} proof;

/** The node that, less `*below`, an atom does not exceed: a range its extent − 1, a remainder its
    divisor − 1, an ITEM the index that its run checks. NULL: none. */
static const node *upper_bound(const node *atom, int64_t *below) {
  const node *most = atom->op == OP_RANGE  ? atom->src[0]
                     : atom->op == OP_ITEM ? atom->src[atom->n_src - 1]
                     : atom->op == OP_MOD  ? atom->src[1]
                                           : NULL;
  *below = atom->op != OP_ITEM;
  return atom->op == OP_MOD && most->lo <= 0 ? NULL : most;
}

/** The youngest factor of a product that has an upper bound; NULL if there is none or a factor may
    be negative. */
static const node *bounded_factor(const node *atom) {
  const node *all[AFFINE_MAX_FACTORS], *youngest = NULL;
  size_t n = 0;
  int64_t below;
  if (!affine_factors(atom, all, &n)) return NULL;
  for (size_t i = 0; i < n; i++) {
    if (all[i]->lo < 0) return NULL;
    bool is_younger = !youngest || all[i]->id > youngest->id;
    if (is_younger && upper_bound(all[i], &below)) youngest = all[i];
  }
  return youngest;
}

/** True for a term that has the value of one of its last two sources. */
static bool has_sides(const node *atom) {
  return atom->op == OP_MIN || atom->op == OP_MAX || atom->op == OP_WHERE;
}

/** The node that disappears when the term c·atom is replaced by a lower bound or by its sides: the
    atom, or a factor of it. NULL: no lower bound is known. */
static const node *replaceable_node(const node *atom, int64_t c) {
  const node *bound;
  int64_t below;
  bool is_quotient =
      atom->op == OP_FLOORDIV && atom->src[1]->op == OP_CONST && atom->src[1]->lo > 0;
  if (has_sides(atom) || (is_quotient && (c < 0 || atom->lo < 0))) return atom;
  if (c > 0) return NULL;
  if (atom->op == OP_MUL) return bounded_factor(atom);
  bound = upper_bound(atom, &below);
  return bound && bound->op != OP_CONST ? atom : NULL; /* an interval has constant bounds */
}

/** Chooses the term to replace: the one of the youngest replaceable node, as inner ranges are
    younger than outer ones. False if no term can be replaced. */
static bool choose_term(const affine_form *f, size_t *term) {
  const node *youngest = NULL;
  for (size_t i = 0; i < f->n; i++) {
    const node *n = replaceable_node(f->atom[i], f->factor[i]);
    if (!n || (youngest && youngest->id > n->id)) continue;
    youngest = n;
    *term = i;
  }
  return youngest != NULL;
}

/** Adds the lower bound of c·x·y, c < 0, for a factor x that has an upper bound and a product y ≥ 0
    of other factors: c·x·y ≥ c·(bound − below)·y. */
static void lower_product(proof *p, affine_form *f, const node *atom, int64_t c) {
  const node *factor = bounded_factor(atom), *rest[AFFINE_MAX_FACTORS];
  size_t n = 0, i = 0;
  int64_t below;
  const node *bound = upper_bound(factor, &below);
  affine_factors(atom, rest, &n);
  while (rest[i] != factor) i++;
  rest[i] = rest[--n];
  affine_form most;
  const node *y = affine_product(p->g, rest, n);
  affine_multiply(p->g, &most, bound, y);
  affine_add_scaled(&most, y, -below);
  if (most.failure) f->failure = most.failure;
  f->offset = affine_add_exact(f, f->offset, affine_mul_exact(f, most.offset, c));
  for (i = 0; i < most.n; i++)
    affine_add_term(f, most.atom[i], affine_mul_exact(f, most.factor[i], c));
}

/** A term of the form that counts floor(x/e) for a quotient floor(x/d) where e divides d, as sizes
    after one and after two poolings; NULL: there is none. */
static const node *finer_quotient(const affine_form *f, const node *quotient) {
  for (size_t i = 0; i < f->n; i++) {
    const node *n = f->atom[i];
    bool is_of_same = n->op == OP_FLOORDIV && n->src[0] == quotient->src[0] && n != quotient;
    if (is_of_same && f->factor[i] > 0 && n->src[1]->op == OP_CONST && n->src[1]->lo > 0 &&
        node_int(quotient->src[1]) % node_int(n->src[1]) == 0)
      return n;
  }
  return NULL;
}

/** Adds the lower bound of c·floor(x/d): c·x/d for c < 0, else c·(x − d + 1)/d. Where c < 0 and the
    form has a finer floor(x/e), the quotient is that of floor(x/e) by d/e. The whole form is scaled
    by `times`, so that factors are integers: f ≥ 0 just if times·f + times − 1 ≥ 0, as f is an
   integer. */
static void lower_quotient(affine_form *f, const node *atom, int64_t c) {
  const node *finer = c < 0 ? finer_quotient(f, atom) : NULL;
  int64_t d = node_int(atom->src[1]) / (finer ? node_int(finer->src[1]) : 1),
          times = d / greatest_common_divisor(d, c);
  f->offset = affine_add_exact(f, affine_mul_exact(f, f->offset, times), times - 1);
  for (size_t i = 0; i < f->n; i++) f->factor[i] = affine_mul_exact(f, f->factor[i], times);
  int64_t of_x = affine_mul_exact(f, c, times) / d;
  affine_add_scaled(f, finer ? finer : atom->src[0], of_x);
  if (c > 0) f->offset = affine_add_exact(f, f->offset, affine_mul_exact(f, of_x, 1 - d));
}

/** Replaces a term by its lower bound; one that has sides by the first or the second. */
static void replace_term(proof *p, affine_form *f, size_t term, size_t side) {
  const node *atom = f->atom[term], *bound;
  int64_t c = f->factor[term], below;
  affine_add_term(f, atom, affine_mul_exact(f, c, -1));
  switch (atom->op) {
  case OP_MIN:
  case OP_MAX:
  case OP_WHERE: affine_add_scaled(f, atom->src[atom->n_src - 2 + side], c); return;
  case OP_MUL: lower_product(p, f, atom, c); return;
  case OP_FLOORDIV: lower_quotient(f, atom, c); return;
  default:
    bound = upper_bound(atom, &below);
    affine_add_scaled(f, bound, c);
    f->offset = affine_add_exact(f, f->offset, affine_mul_exact(f, c, -below));
    return;
  }
}

static bool prove_form_nonnegative(proof *p, affine_form *f) {
  size_t term;
  for (;;) {
    while (!f->failure && affine_recombine(p->g, f)) {}
    if (f->failure) return false;
    interval bounds = infer_affine_bounds(f->offset, f->n, f->atom, f->factor);
    if (bounds.lo >= 0) return true;
    if (bounds.hi < 0 || !p->steps_left || !choose_term(f, &term)) return false;
    p->steps_left--;
    if (has_sides(f->atom[term])) {
      op o = (op)f->atom[term]->op;
      bool either_is_enough = o != OP_WHERE && (o == OP_MIN) == (f->factor[term] < 0);
      affine_form first = *f;
      replace_term(p, &first, term, 0);
      if (prove_form_nonnegative(p, &first) == either_is_enough) return either_is_enough;
    }
    replace_term(p, f, term, 1);
  }
}

/** Proves k + b − a ≥ 0. */
static bool prove_gap(ir *g, int64_t k, const node *a, const node *b) {
  proof p = {g, PROOF_STEPS};
  affine_form f;
  affine_form_init(&f, k);
  affine_add_scaled(&f, b, 1);
  affine_add_scaled(&f, a, -1);
  return prove_form_nonnegative(&p, &f);
}

bool ix_prove_nonnegative(ir *g, const node *a) {
  if (a->lo >= 0 || a->hi < 0) return a->lo >= 0;
  proof p = {g, PROOF_STEPS};
  affine_form f;
  affine_form_init(&f, 0);
  affine_add_scaled(&f, a, 1);
  return prove_form_nonnegative(&p, &f);
}

bool ix_prove_le(ir *g, const node *a, const node *b) {
  return a->hi <= b->lo || (a->lo <= b->hi && prove_gap(g, 0, a, b));
}

bool ix_prove_lt(ir *g, const node *a, const node *b) {
  return a->hi < b->lo || (a->lo < b->hi && prove_gap(g, -1, a, b));
}

bool ix_prove_in_bounds(ir *g, size_t rank, const node *const extents[],
                        const node *const coords[]) {
  for (size_t i = 0; i < rank; i++)
    if (!ix_prove_nonnegative(g, coords[i]) || !ix_prove_lt(g, coords[i], extents[i])) return false;
  return true;
}
