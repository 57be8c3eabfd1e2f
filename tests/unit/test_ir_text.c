/* Tests the IR's text form: printed graphs parse to the same graph, also random and very deep ones;
   ill-formed text is refused with a message. Also dumps after passes and Graphviz drawings. */
#include "base/file.h"
#include "ir/core/binder.h"
#include "ir/core/check_node.h"
#include "ir/core/pass_names.h"
#include "ir/index/index_arithmetic.h"
#include "ir/text/dump_after_pass.h"
#include "ir/text/graphviz.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "support/counting_mem.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Every op at least once, of all stages. */
static const char every_op[] =
    "%n = var index [min=1 max=64] \"n\"\n"
    "%m = var index [min=-8 max=8] \"m\\x00\\n\\\"\\\\\"\n"
    "%p = param f32 4 8 [slot=0]\n"
    "%b = buffer f32 4 8 [uid=3 version=1]\n"
    "%bn = buffer f32 %n 8 [uid=4 version=0]\n"
    "%w = buffer i32 4 8 [uid=5 version=0]\n"
    "%t = buffer bool 4 8 [uid=6 version=0]\n"
    "%neg = neg f32 %p\n%abs = abs f32 %neg\n%not = not bool %t\n%sqrt = sqrt f32 %abs\n"
    "%fl = floor f32 %p\n%ceil = ceil f32 %p\n%tr = trunc f32 %p\n%ro = round f32 %p\n"
    "%exp = exp f32 %p\n%exp2 = exp2 f32 %p\n%e1 = expm1 f32 %p\n%log = log f32 %p\n"
    "%log2 = log2 f32 %p\n%l1 = log1p f32 %p\n%sin = sin f32 %p\n%cos = cos f32 %p\n"
    "%tan = tan f32 %p\n%asin = asin f32 %p\n%acos = acos f32 %p\n%atan = atan f32 %p\n"
    "%sh = sinh f32 %p\n%ch2 = cosh f32 %p\n%ta = tanh f32 %p\n%ah = asinh f32 %p\n"
    "%ch = acosh f32 %p\n%th = atanh f32 %p\n%erf = erf f32 %p\n"
    "%cast = cast f16 %p\n%bc = bitcast i32 %p\n"
    "%add = add f32 %neg %b\n%sub = sub f32 %neg %b\n%mul = mul f32 %neg %b\n"
    "%div = div f32 %neg %b\n%fd = floordiv i32 %w %bc\n%mod = mod i32 %w %bc\n"
    "%cdiv = cdiv i32 %w %bc\n%cmod = cmod i32 %w %bc\n%max = max f32 %neg %b\n"
    "%min = min f32 %b %neg\n%and = and i32 %w %bc\n%or = or i32 %w %bc\n"
    "%xor = xor bool %t %not\n%shl = shl i32 %w %w\n%shr = shr i32 %w %w\n%pow = pow f32 %neg %b\n"
    "%lt = lt bool %neg %b\n%le = le bool %neg %b\n%eq = eq bool %w %bc\n"
    "%ne = ne bool %t %not\n%where = where f32 %t %neg %b\n%fma = fma f32 %neg %b %p\n"
    "%by = dot_u8i8 i32 %w %w %bc\n%ha = dot_i16 i32 %w %bc %w\n"
    "%pa = dot_bf16 f32 %neg %b %p\n"
    "%rs = reshape f32 %p 2 2 8\n%one = const f32 1\n%o1 = reshape f32 %one 1 1\n"
    "%ex = expand f32 %o1 %n 8\n%pe = permute f32 %rs [2 0 1]\n"
    "%sl = slice f32 %p 3 1 2 3 [-2 2]\n%pad = pad f32 %p %one 1 0 %n 9\n"
    "%i0 = iota i64 4 8 [axis=0]\n%i1 = iota i64 4 8 [axis=1]\n%g = gather f32 %b %i0 %i1\n"
    "%red = reduce f32 %pe [op=max 0 2]\n"
    "%sc = scatter f32 %b %neg %i0 %i1 [op=add]\n%sn = scan f32 %b %i1 [op=max axis=1 classes=8]\n"
    "%it = item index %w 3 %m 64 [min=-2]\n"
    "%pk = pick f32 1 %neg %b 4 8\n"
    "%view = slice f32 %b 0 0 4 8 [1 1]\n%set = set f32 %b %view %neg\n"
    "%cu = custom f64 %p %t 3 %n [uid=9 output=1 inputs=2 writes=1]\n"
    "%kernel = kernel f64 %p %t 3 %n [slot=1 inputs=2] \"return %x\\n\"\n"
    "%trip = range index 4 [id=9 kind=loop axis=0 tail=0]\n"
    "%back = affine index %trip [3 -1]\n%carry = carry f32 %trip 4 8 [component=0]\n"
    "%next = add f32 %carry %b\n%loop = loop void %trip %b %next %carry %back "
    "[states=1 emits=1]\n%emitted = result f32 %loop 4 4 8 [component=1 inputs=1 number=0]\n"
    "%ran = result f32 %b %next 4 8 [component=0 inputs=2 number=3]\n"
    /* kernels */
    "%i = range index %n [id=0 kind=thread axis=1 tail=0]\n"
    "%k = range index 8 [id=7 kind=loop axis=0 tail=1]\n"
    "%a = affine index %i %k [-3 4 1]\n%half = floordiv index %a 2\n%rest = mod index %a 2\n"
    "%prod = mul index %i %k\n%least = min index %prod %half\n%most = max index %prod 5\n"
    "%x = index f32 %p %i %k [component=0]\n"
    "%state = state f32 %k [component=0]\n%s = index f32 %state [component=0]\n"
    "%step = add f32 %s %x\n"
    "%fold = fold void %one %x %k [states=1 emits=0 ranges=1 pins=0 add -1]\n"
    "%j = range index 8 [id=8 kind=loop axis=0 tail=0]\n"
    "%rows = stage void %step %j 8 %j [values=1 ranges=1 pins=0 cut=0 1]\n"
    "%scan = fold void %one %one %step %rows %s %k 8 %k %i "
    "[states=2 emits=1 ranges=1 pins=1 - -1 max 0 1]\n"
    "%sum = index f32 %fold [component=0]\n"
    "%stage = stage void %sum %i %n %i [values=1 ranges=1 pins=0 cut=1 1]\n"
    "%op = param f32 %n [slot=1]\n%out = out void %op %stage\n%sink = sink void %out \"sum of "
    "rows\"\n"
    /* lowered */
    "%core = special index %n \"core_id\"\n"
    "%regs = alloc f32x8 4 %i [id=0 space=0]\n%scratch = alloc f32 %n [id=1 space=1]\n"
    "%inside = lt bool %i 3\n%none = invalid index\n%gate = where index %inside %a %none\n"
    "%load = load f32 %p %gate\n%loads = load f32x8 %p %a\n%splat = splat f32x8 %load\n"
    "%vadd = add f32x8 %splat %loads\n%lane = extract f32 %vadd [lane=7]\n"
    "%vec = vectorize f32x2 %lane %load\n%store = store void %regs 3 %vadd\n"
    "%fetch = prefetch void %p %a %i\n%meet = barrier void [id=8 space=3]\n%end = end void %i "
    "%store %fetch\n%after = after f32 %regs "
    "%end %k\n%again = load f32x8 %after 3\n"
    "%vone = const f32x8 0.5\n"
    "%cpu = device void \"CPU\"\n%list = linear void %i %store %end\n"
    "%c = source void \"int k;\\n\"\n%o = binary void \"\\x7fELF\\x00\\xff\"\n"
    "%pr = program void %sink %cpu %list %c %o\n"
    "return %pr\n";

typedef struct world {
  diag d;
  arena a;
  ir *g, *other;
  const char *text;
  size_t bytes;
  node_list roots;
  counting_mem memory;
  mem m; /* of `memory` */
} world;

/** Runs a body with two graphs; the last failure's message is in w->d. */
static tn_status run(world *w, bool counted, void (*body)(void *w)) {
  w->m = counting_mem_of(&w->memory);
  w->memory.bytes = w->memory.calls = 0;
  arena_init(&w->a, &w->m, &w->d);
  w->g = ir_new(&w->m, &w->d, counted);
  w->other = ir_new(&w->m, &w->d, counted);
  tn_status s = w->g && w->other ? diag_catch(&w->d, body, w) : TN_ERR_MEMORY;
  ir_free(w->g);
  ir_free(w->other);
  arena_free(&w->a);
  assert_int_equal(w->memory.bytes, 0);
  return s;
}

static str printed(world *w, const node *const roots[], size_t n) {
  str s = str_new(&w->a);
  print_graph(&s, roots, n);
  return s;
}

static void parse_text(void *arg) {
  world *w = arg;
  w->roots = parse_graph(w->g, &w->a, w->text, w->bytes);
}

/** Checks that parsing a text fails with this message. */
static void refused(const char *text, const char *message) {
  for (int counted = 0; counted < 2; counted++) {
    world w = {.text = text, .bytes = strlen(text)};
    assert_int_equal(run(&w, counted, parse_text), TN_ERR_FORMAT);
    assert_string_equal(w.d.text, message);
  }
}

/* Form of printed graphs. */

static void print_it(void *arg) {
  world *w = arg;
  const char *expected = w->text;
  node_list roots = parse_graph(w->g, &w->a, w->text, w->bytes);
  str s = printed(w, roots.at, roots.n);
  assert_string_equal(str_text(&s), expected);
}

static void unchanged(const char *text) {
  world w = {.text = text, .bytes = strlen(text)};
  if (run(&w, false, print_it) != TN_OK) fail_msg("%s", w.d.text);
  if (run(&w, true, print_it) != TN_OK) fail_msg("%s", w.d.text);
}

static void looks_like_this(void **state) {
  (void)state;
  unchanged("%0 = param f32 4 8 [slot=0] ; 4x8\n"
            "%1 = range index 4 [id=0 kind=thread axis=2 tail=1]\n"
            "%2 = index f32 %0 %1 7 [component=0]\n"
            "%3 = const f32 -0.0\n"
            "%4 = add f32 %2 %3\n"
            "return %4 3\n");
  unchanged("%0 = var index [min=1 max=64] \"n\"\n"
            "%1 = param bf16 %0 8 [slot=0] ; %0x8\n"
            "%2 = permute bf16 %1 [1 0] ; 8x%0\n"
            "%3 = reduce bf16 %2 [op=max 1] ; 8\n"
            "return %3\n");
  unchanged("return\n");
  unchanged("return 5 -7\n");
  unchanged("%0 = sink void \"a \\\"name\\\"\\n\\\\\\x00\\xff\"\nreturn %0\n");
}

/* Numbers. */

static const char *number_text(world *w, dtype t, uint64_t bits) {
  str s = str_new(&w->a);
  print_scalar(&s, t, bits);
  return str_text(&s);
}

static void numbers_read_back(void *arg) {
  world *w = arg;
  uint64_t seed = 1;
  for (int t = 0; t < DT_VOID; t++) {
    const char *name = dtype_facts_of(t)->name;
    if (!name) continue;
    for (int i = 0; i < 3000; i++) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      uint64_t raw = seed ^ seed >> 29, bits;
      if (dtype_bytes((dtype)t) == 2) raw = (uint64_t)i * 22; /* across all values */
      bits = t == DT_BOOL ? raw & 1 : scalar_load((dtype)t, &raw);
      char *text = arena_printf(&w->a, "%%x = const %s %s\nreturn %%x\n", name,
                                number_text(w, (dtype)t, bits));
      node_list roots = parse_graph(w->g, &w->a, text, strlen(text));
      assert_int_equal((uint64_t)node_int(roots.at[0]), bits);
    }
  }
}

static void numbers(void **state) {
  (void)state;
  world w = {0};
  if (run(&w, false, numbers_read_back) != TN_OK) fail_msg("%s", w.d.text);
  if (!setlocale(LC_NUMERIC, "de_DE.UTF-8")) return;
  assert_int_equal(run(&w, false, numbers_read_back), TN_OK);
  setlocale(LC_NUMERIC, "C");
}

static uint64_t bits_of(dtype t, double v) { return scalar_from_double(t, v); }

static void numbers_shown(void *arg) {
  world *w = arg;
  assert_string_equal(number_text(w, DT_F32, bits_of(DT_F32, 0.1)), "0.1");
  assert_string_equal(number_text(w, DT_F64, bits_of(DT_F64, 0.1)), "0.1");
  assert_string_equal(number_text(w, DT_F16, bits_of(DT_F16, 65504)), "65500.0");
  assert_string_equal(number_text(w, DT_F32, bits_of(DT_F32, -0.0)), "-0.0");
  assert_string_equal(number_text(w, DT_F32, bits_of(DT_F32, 0.0001)), "0.0001");
  assert_string_equal(number_text(w, DT_F32, bits_of(DT_F32, 12345)), "12345.0");
  assert_string_equal(number_text(w, DT_F64, bits_of(DT_F64, 1e300)), "1.0e300");
  assert_string_equal(number_text(w, DT_F64, bits_of(DT_F64, 4.9e-324)), "5.0e-324");
  assert_string_equal(number_text(w, DT_F32, bits_of(DT_F32, -INFINITY)), "-inf");
  assert_string_equal(number_text(w, DT_F32, 0x7fc00000), "nan");
  assert_string_equal(number_text(w, DT_F32, 0xffc00001), "nan(0xffc00001)");
  assert_string_equal(number_text(w, DT_F16, 0x7e00), "nan");
  assert_string_equal(number_text(w, DT_BF16, 0x7fc0), "nan");
  assert_string_equal(number_text(w, DT_F64, UINT64_C(0x7ff8000000000000)), "nan");
  assert_string_equal(number_text(w, DT_U64, UINT64_MAX), "18446744073709551615");
  assert_string_equal(number_text(w, DT_I64, (uint64_t)INT64_MIN), "-9223372036854775808");
}

static void numbers_are_short(void **state) {
  (void)state;
  world w = {0};
  assert_int_equal(run(&w, false, numbers_shown), TN_OK);
}

/* Round trips of random graphs: nodes of every op, with parts exchanged at random. */

enum { TRIES = 60000, MOST = 2000 };

typedef struct pool {
  world *w;
  uint64_t seed;
  const node *at[MOST];
  size_t n, given, of_op[OP_LIMIT]; /* the first nodes come from the text above */
} pool;

static uint64_t pick(pool *p, uint64_t below) {
  p->seed = p->seed * 6364136223846793005u + 1442695040888963407u;
  return (p->seed >> 33) % below;
}

static int64_t other_int(pool *p, int64_t old) {
  static const int64_t edges[] = {0, 1, -1, 2, 8, INT64_MAX, INT64_MIN, 255, OP_ADD, OP_LIMIT};
  if (!pick(p, 4)) return (int64_t)(pick(p, UINT32_MAX) * pick(p, UINT32_MAX));
  return pick(p, 2) ? (int64_t)((uint64_t)old + pick(p, 9) - 4)
                    : edges[pick(p, sizeof edges / sizeof *edges)];
}

/** Makes a variation of an existing node; NULL if that is ill-formed. */
static const node *varied(pool *p) {
  static const dtype types[] = {DT_F32,  DT_F16, DT_I32,   DT_I64,  DT_U8,
                                DT_BOOL, DT_F64, DT_INDEX, DT_VOID, (dtype)14};
  const node *n = p->at[pick(p, pick(p, 2) ? p->n : p->given)], *src[64];
  int64_t ints[64];
  char text[64];
  if (n->n_src > 60 || n->n_int > 60 || n->n_text > 60) return NULL;
  node_spec s = {(op)n->op, (dtype)n->dtype, n->lanes, src,      n->n_src,
                 ints,      n->n_int,        text,     n->n_text};
  for (size_t i = 0; i < s.n_src; i++) src[i] = n->src[i];
  for (size_t i = 0; i < s.n_int; i++) ints[i] = n->ints[i];
  for (size_t i = 0; i < s.n_text; i++) text[i] = n->text[i];
  for (uint64_t changes = 1 + pick(p, 3); changes--;) {
    switch (pick(p, 10)) {
    case 0: s.op = (op)pick(p, OP_LIMIT + 1); break;
    case 1: s.dtype = types[pick(p, sizeof types / sizeof *types)]; break;
    case 2: s.lanes = (uint16_t)pick(p, 10); break;
    case 3: s.n_src = pick(p, 2) && s.n_src ? s.n_src - 1 : s.n_src + 1; break;
    case 4: s.n_int = pick(p, 2) && s.n_int ? s.n_int - 1 : s.n_int + 1; break;
    case 5:
      s.n_text = pick(p, 5);
      for (size_t i = 0; i < s.n_text; i++) text[i] = (char)pick(p, 256);
      break;
    case 6:
    case 7:
      if (s.n_int) ints[pick(p, s.n_int)] = other_int(p, ints[0]);
      break;
    default:
      if (s.n_src) src[pick(p, s.n_src)] = p->at[pick(p, pick(p, 2) ? p->n : p->given)];
    }
    if (s.n_src > n->n_src) src[s.n_src - 1] = p->at[pick(p, p->n)];
    if (s.n_int > n->n_int) ints[s.n_int - 1] = other_int(p, 1);
  }
  return ir_check_spec(&s) ? NULL : ir_make(p->w->g, &s);
}

/** Further ops, which make the text above too long for a literal. */
static const char further_ops[] =
    "%apart = distinct index %half %i %rest\n"
    "%wait = wait void %i [pending=-1]\n%slots = alloc f32 8 [id=2 space=3 slots=2]\n"
    "%tile = load f32x256 %p %a 16 [columns=16]\n%tf = tile_bf16 f32x256 %tile %tile %tile\n"
    "%words = const i32x256 3\n%tu = tile_u8i8 i32x256 %words %words %words\n"
    "%pb = dot_f16 f32 %neg %b %p\n%four = load f32x4 %p %a\n%two = load f32x2 %p %a\n"
    "%mb = mma_bf16 f32x4 %four %four %two\n%mf = mma_f16 f32x4 %four %four %two\n";

static void fill_pool(pool *p) {
  node_list roots = parse_graph(p->w->g, &p->w->a, every_op, strlen(every_op));
  (void)roots;
  /* the text's root reaches only part of the nodes: parses it again with every name as a root */
  str all = str_new(&p->w->a);
  str_add_bytes(&all, every_op, strlen(every_op) - strlen("return %pr\n"));
  str_add(&all, further_ops);
  str_add(&all, "return %tile %tf %tu %apart %wait %slots %pb %mb %mf");
  for (const char *c = every_op; (c = strchr(c, '%')); c++)
    if (c == every_op || c[-1] == '\n') str_addf(&all, " %.*s", (int)strcspn(c, " "), c);
  str_add(&all, "\n");
  roots = parse_graph(p->w->g, &p->w->a, all.at, all.n);
  for (size_t i = 0; i < roots.n; i++) p->at[p->n++] = roots.at[i];
}

/** Prints, parses into another graph and prints again. */
static void round_trip(world *w, bool counted, const node *const roots[], size_t n) {
  ir_free(w->other);
  w->other = ir_new(&w->m, &w->d, counted);
  if (!w->other) diag_raise(&w->d, TN_ERR_MEMORY, "out of memory");
  str first = printed(w, roots, n);
  node_list again = parse_graph(w->other, &w->a, first.at, first.n);
  assert_int_equal(again.n, n);
  str second = printed(w, again.at, again.n);
  assert_string_equal(str_text(&first), str_text(&second));
  for (size_t i = 0; i < n; i++) {
    assert_int_equal(roots[i]->lo, again.at[i]->lo);
    assert_int_equal(roots[i]->hi, again.at[i]->hi);
    assert_int_equal(roots[i]->rank, again.at[i]->rank);
  }
  node_list same = parse_graph(w->g, &w->a, second.at, second.n);
  for (size_t i = 0; i < n; i++) assert_ptr_equal(same.at[i], roots[i]);
}

static void random_graphs(void *arg) {
  pool *p = calloc(1, sizeof *p);
  assert_non_null(p);
  *p = (pool){.w = arg, .seed = 12};
  fill_pool(p);
  size_t first = p->given = p->n;
  for (int t = 0; t < TRIES; t++) {
    const node *n = varied(p);
    if (!n || n->free->n > 200) continue;
    p->of_op[n->op]++;
    p->at[p->n < MOST ? p->n++ : first + pick(p, MOST - first)] = n;
  }
  for (int o = 0; o < OP_LIMIT; o++)
    if (!p->of_op[o]) fail_msg("no random node of op %s", op_name((op)o));
  for (int t = 0; t < 50; t++) {
    const node *roots[20];
    for (int i = 0; i < 20; i++) roots[i] = p->at[pick(p, p->n)];
    round_trip(p->w, t % 2, roots, 1 + pick(p, 20));
  }
  round_trip(p->w, false, p->at, p->n);
  free(p);
}

static void round_trips(void **state) {
  (void)state;
  world w = {0};
  if (run(&w, false, random_graphs) != TN_OK) fail_msg("%s", w.d.text);
  w = (world){0};
  if (run(&w, true, random_graphs) != TN_OK) fail_msg("%s", w.d.text);
}

/** Canonical index arithmetic stays canonical although nodes get other numbers. */
static void parsed_forms(void *arg) {
  world *w = arg;
  ir *g = w->g;
  const node *n = ix_const(g, 6);
  const node *i = range_make(g, n, KIND_LOOP), *k = range_make(g, n, KIND_LOOP);
  const node *roots[] = {k, ix_add(g, i, k), ix_mul(g, i, k), ix_min(g, ix_scale(g, i, 3), k), i};
  str s = printed(w, roots, 5);
  node_list r = parse_graph(w->other, &w->a, s.at, s.n);
  ir *o = w->other;
  assert_ptr_equal(r.at[1], ix_add(o, r.at[0], r.at[4]));
  assert_ptr_equal(r.at[2], ix_mul(o, r.at[0], r.at[4]));
  assert_ptr_equal(r.at[3], ix_min(o, r.at[0], ix_scale(o, r.at[4], 3)));
}

static void stays_canonical(void **state) {
  (void)state;
  world w = {0};
  assert_int_equal(run(&w, false, parsed_forms), TN_OK);
}

/* Large graphs. */

enum { DEEP = 100000 };

static void deep(void *arg) {
  world *w = arg;
  int64_t ints[] = {0, 0};
  const node *x = ir_node(w->g, OP_BUFFER, DT_F32, NULL, 0, ints, 2), *y = x;
  for (int i = 0; i < DEEP; i++) {
    const node *z = ir_op2(w->g, i % 3 ? OP_ADD : OP_MUL, x, y);
    y = x;
    x = z;
  }
  str first = printed(w, &x, 1);
  node_list again = parse_graph(w->other, &w->a, first.at, first.n);
  str second = printed(w, again.at, again.n);
  assert_true(first.n == second.n && !memcmp(first.at, second.at, first.n));
  assert_int_equal(ir_node_count(w->other), DEEP + 1);
}

static void deep_graphs(void **state) {
  (void)state;
  for (int counted = 0; counted < 2; counted++) {
    world w = {0};
    if (run(&w, counted, deep) != TN_OK) fail_msg("%s", w.d.text);
  }
}

/* Bad text. */

static void bad_text(void **state) {
  (void)state;
  refused("", "line 1, column 1: expected a node's name or 'return', found the end of the text");
  refused("\n; nothing\n x", "line 3, column 2: expected a node's name or 'return', found 'x'");
  refused("%0 = const f32 1\n",
          "line 2, column 1: expected a node's name or 'return', found the end of the text");
  refused("%0 = frobnicate f32\n", "line 1, column 6: expected an op, found 'frobnicate'");
  refused("%0 = neg f33 %1\n", "line 1, column 10: expected a type, found 'f33'");
  refused("%0 = neg f32x0 %1\n", "line 1, column 15: no number of lanes");
  refused("%0 = neg f32 %1\n", "line 1, column 14: no line above has this name");
  refused("%0 = neg f32 %0\n", "line 1, column 14: no line above has this name");
  refused("%0 = neg f32\n", "line 1, column 6: too few sources");
  refused("%0 = const f32 1\n%0 = neg f32 %0\n",
          "line 2, column 2: a line above has this name already");
  refused("% = const f32 1\n", "line 1, column 2: expected a node's name, found '?'");
  refused("%0 : const f32 1\n", "line 1, column 4: expected '=', found ':'");
  refused("%0 = const f32 1 2\n", "line 1, column 18: expected the end of the line, found '2'");
  refused("%0 = const u8 256\n", "line 1, column 6: a number outside its type");
  refused("%0 = const u64 -1\n", "line 1, column 18: a number outside its type");
  refused("%0 = const i64 9223372036854775808\n", "line 1, column 16: a number beyond 64 bits");
  refused("%0 = const void 1\n", "line 1, column 17: the op does not make this type");
  refused("%0 = const f32 .\n", "line 1, column 17: expected a number, found the end of the line");
  refused("%0 = const f32 1e99999\n", "line 1, column 23: an exponent that no type has");
  refused("%0 = const f16 nan(0x17e00)\n", "line 1, column 6: a number outside its type");
  refused("%0 = range index 8 [id=0 kind=vortex axis=0 tail=0]\n",
          "line 1, column 31: expected a kind of range, found 'vortex'");
  refused("%0 = range index 8 [id=0 axis=0]\n",
          "line 1, column 26: expected 'kind=', found 'axis=0]'");
  refused("%0 = range index -8 [id=0 kind=loop axis=0 tail=0]\n",
          "line 1, column 6: an extent below 0");
  refused("%0 = sink void \"x\nreturn",
          "line 1, column 18: expected '\"', found the end of the line");
  refused("%0 = sink void \"\\q\"\n",
          "line 1, column 18: expected an escape: n, x, \\ or \", found 'q\"'");
  refused("%0 = sink void \"\\x1\"\n",
          "line 1, column 20: expected two hexadecimal digits, found '\"'");
  refused("return %1\n", "line 1, column 8: no line above has this name");
  refused("return\nmore", "line 2, column 1: expected the end of the text, found 'more'");
  refused("%0 = var index [min=0 max=4] \"n\"\n%1 = affine index %0 %0 [0 1 1]\n",
          "line 2, column 6: terms of an affine form are distinct and in the order of their nodes");
}

static void cut_text(void **state) {
  (void)state;
  size_t whole = strlen(every_op), last = (size_t)(strstr(every_op, "return") - every_op);
  for (size_t n = 0; n < whole; n++) {
    char *copy = malloc(n + 1); /* of its exact size, so that sanitizers see overruns */
    assert_non_null(copy);
    memcpy(copy, every_op, n);
    world w = {.text = copy, .bytes = n};
    tn_status s = run(&w, n % 2, parse_text);
    if (n < last + strlen("return")) assert_int_equal(s, TN_ERR_FORMAT);
    if (n == whole - 1) assert_int_equal(s, TN_OK);
    free(copy);
  }
}

/** Random byte changes: the text is refused, or parses to a graph that can be printed. */
static void parse_and_print(void *arg) {
  world *w = arg;
  parse_text(w);
  printed(w, w->roots.at, w->roots.n);
}

static void spoilt_text(void **state) {
  (void)state;
  uint64_t seed = 5;
  int parsed = 0;
  for (int t = 0; t < 3000; t++) {
    char text[sizeof every_op];
    memcpy(text, every_op, sizeof text);
    for (int k = 0; k < 1 + t % 4; k++) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      size_t at = (seed >> 33) % (sizeof text - 1), from = (seed >> 13) % (sizeof text - 1);
      text[at] = t % 5 ? every_op[from] : (char)(seed >> 40);
    }
    world w = {.text = text, .bytes = sizeof text - 1};
    tn_status s = run(&w, t % 2, parse_and_print);
    assert_true(s == TN_OK || s == TN_ERR_FORMAT);
    parsed += s == TN_OK;
  }
  assert_true(parsed > 10);
}

/** The number of free ranges of a node is limited. */
static void many_ranges(void *arg) {
  world *w = arg;
  str s = str_new(&w->a);
  str_add(&s, "%s0 = const i64 0\n");
  for (int i = 0; i < 300; i++) {
    str_addf(&s, "%%r%d = range index 4 [id=%d kind=loop axis=0 tail=0]\n", i, i);
    str_addf(&s, "%%c%d = cast i64 %%r%d\n%%s%d = add i64 %%s%d %%c%d\n", i, i, i + 1, i, i);
  }
  str_add(&s, "return\n");
  parse_graph(w->g, &w->a, s.at, s.n);
}

static void many_free_ranges(void **state) {
  (void)state;
  world w = {0};
  assert_int_equal(run(&w, false, many_ranges), TN_ERR_FORMAT);
  assert_non_null(strstr(w.d.text, "more than 256 free ranges"));
}

static void whole_trip(void *arg) {
  world *w = arg;
  node_list roots = parse_graph(w->g, &w->a, every_op, strlen(every_op));
  round_trip(w, false, roots.at, roots.n);
  str s = str_new(&w->a);
  graphviz_print(&s, roots.at, roots.n);
}

static void memory_runs_out(void **state) {
  (void)state;
  for (int counted = 0; counted < 2; counted++) {
    tn_status s = TN_ERR_MEMORY;
    size_t n = 1;
    for (; s != TN_OK && n < 3000; n++) {
      world w = {.memory.fail_at = n};
      s = run(&w, counted, whole_trip);
      assert_true(s == TN_OK || s == TN_ERR_MEMORY);
    }
    assert_true(n > 20 && n < 3000);
  }
}

/* Drawings (Graphviz). */

static void drawn(void *arg) {
  world *w = arg;
  node_list roots = parse_graph(w->g, &w->a, w->text, w->bytes);
  str s = str_new(&w->a);
  graphviz_print(&s, roots.at, roots.n);
  assert_string_equal(
      str_text(&s),
      "digraph ir {\n"
      "  node [shape=box, style=filled, fontname=monospace];\n"
      "  n1 [label=\"%0 range index 0:4 [id=0 kind=vector axis=0 tail=0]\", "
      "fillcolor=\"#8fd3f0\", penwidth=3];\n"
      "  n2 [label=\"%1 param f32 0:4 1:8 [slot=0]\\n4x8\", fillcolor=\"#f0f0f0\"];\n"
      "  n3 [label=\"%2 index f32 2:7 [component=0]\", fillcolor=\"#fff6bf\"];\n"
      "  n2 -> n3 [label=\"0\"];\n"
      "  n1 -> n3 [label=\"1\"];\n"
      "  n4 [label=\"%3 neg f32\", fillcolor=\"#eef3fb\", penwidth=3];\n"
      "  n3 -> n4;\n"
      "  n5 [label=\"%4 sink void \\\"a\\\\\\\"b\\\"\", fillcolor=\"#f9d9d9\", penwidth=3];\n"
      "}\n");
}

static void drawing(void **state) {
  (void)state;
  const char *text = "%r = range index 4 [id=0 kind=vector axis=0 tail=0]\n"
                     "%p = param f32 4 8 [slot=0]\n%x = index f32 %p %r 7 [component=0]\n"
                     "%y = neg f32 %x\n%s = sink void \"a\\\"b\"\nreturn %r %y %s\n";
  world w = {.text = text, .bytes = strlen(text)};
  if (run(&w, false, drawn) != TN_OK) fail_msg("%s", w.d.text);
}

/* Dumps. */

static void dump_options(void **state) {
  (void)state;
  diag d = {0};
  dump u;
  assert_int_equal(dump_parse_option(&u, NULL, &d), TN_OK);
  assert_false(dump_is_enabled(&u, "kernel"));
  assert_int_equal(dump_parse_option(&u, "", &d), TN_OK);
  assert_int_equal(dump_parse_option(&u, "some:after:versions:after:kernel", &d), TN_OK);
  assert_int_equal(u.folder_bytes, strlen("some:after:versions"));
  assert_true(dump_is_enabled(&u, "kernel") && !dump_is_enabled(&u, "kerne") &&
              !dump_is_enabled(&u, "kernels2"));
  assert_int_equal(dump_parse_option(&u, "x:after:*", &d), TN_OK);
  assert_true(dump_is_enabled(&u, "kernel"));
  for (pass p = 0; p < PASSES; p++) {
    char option[64];
    snprintf(option, sizeof option, "x:after:%s", pass_name(p));
    assert_int_equal(dump_parse_option(&u, option, &d), TN_OK);
    for (pass q = 0; q < PASSES; q++) assert_int_equal(dump_is_enabled(&u, pass_name(q)), p == q);
  }
  assert_int_equal(dump_parse_option(&u, "x:after:nosuch", &d), TN_ERR_ARGUMENT);
  assert_non_null(strstr(d.text, "nosuch"));
  for (pass p = 0; p < PASSES; p++) assert_non_null(strstr(d.text, pass_name(p)));
  static const char *const bad[] = {"x", "x:after:", ":after:kernel", "x:before:kernel"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(dump_parse_option(&u, bad[i], &d), TN_ERR_ARGUMENT);
    assert_false(dump_is_enabled(&u, "kernel"));
    assert_non_null(strstr(d.text, bad[i]));
  }
}

static void check_file(world *w, const char *path, const char *start) {
  file_map f;
  assert_int_equal(file_map_open(&f, path, &w->d), TN_OK);
  assert_true(f.bytes > strlen(start) && !memcmp(f.data, start, strlen(start)));
  file_map_close(&f);
  unlink(path);
}

static void dumped(void *arg) {
  world *w = arg;
  char *folder = temporary_folder(&w->a);
  assert_non_null(folder);
  char *inner = arena_printf(&w->a, "%s/a", folder);
  const node *x = ir_const(w->g, DT_F32, 1.5);
  dump u;
  assert_int_equal(dump_parse_option(&u, arena_printf(&w->a, "%s:after:*", inner), &w->d), TN_OK);
  assert_int_equal(dump_after(&u, "kernel", "../soft max", &x, 1, &w->m, &w->d), TN_OK);
  assert_int_equal(dump_after(&u, "versions", "", &x, 1, &w->m, &w->d), TN_OK);
  check_file(w, arena_printf(&w->a, "%s/0000-___soft_max-kernel.ir", inner),
             "%0 = const f32 1.5\n");
  check_file(w, arena_printf(&w->a, "%s/0000-___soft_max-kernel.dot", inner), "digraph");
  check_file(w, arena_printf(&w->a, "%s/0001-graph-versions.ir", inner), "%0 = const");
  check_file(w, arena_printf(&w->a, "%s/0001-graph-versions.dot", inner), "digraph");
  assert_int_equal(dump_parse_option(&u, arena_printf(&w->a, "%s:after:kernel", inner), &w->d),
                   TN_OK);
  assert_int_equal(dump_after(&u, "versions", "g", &x, 1, &w->m, &w->d), TN_OK);
  assert_int_equal(u.written, 0);
  rmdir(inner); /* fails if a file was left */
  assert_int_not_equal(access(inner, F_OK), 0);
  assert_int_equal(file_write(inner, "x", 1, &w->d), TN_OK); /* a file where the folder should be */
  assert_int_equal(dump_after(&u, "kernel", "g", &x, 1, &w->m, &w->d), TN_ERR_IO);
  assert_non_null(strstr(w->d.text, inner));
  unlink(inner);
  rmdir(folder);
}

static void dumps(void **state) {
  (void)state;
  world w = {0};
  if (run(&w, false, dumped) != TN_OK) fail_msg("%s", w.d.text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(looks_like_this),   cmocka_unit_test(numbers),
      cmocka_unit_test(numbers_are_short), cmocka_unit_test(round_trips),
      cmocka_unit_test(stays_canonical),   cmocka_unit_test(deep_graphs),
      cmocka_unit_test(bad_text),          cmocka_unit_test(cut_text),
      cmocka_unit_test(spoilt_text),       cmocka_unit_test(many_free_ranges),
      cmocka_unit_test(memory_runs_out),   cmocka_unit_test(drawing),
      cmocka_unit_test(dump_options),      cmocka_unit_test(dumps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
