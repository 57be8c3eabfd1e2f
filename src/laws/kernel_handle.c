/* Implements user kernels, the tn_kernel functions of unstable/ir.h: verifies a kernel, applies its
   schedule once to a canonical copy to check it, and stores the printed text. A tn_kernel is shared
   by atomic reference counting and may outlive the tn_ir that it was made in. */
#include "laws/kernel_handle.h"

#include "ir/text/print.h"
#include "ir/text/sink_text.h"
#include "ir/transform/copy_graph.h"
#include "ir/verify/kernel_signature.h"
#include "ir/verify/verify_graph.h"
#include "laws/kernel_schedule.h"

#include <stdatomic.h>
#include <string.h>

struct tn_kernel {
  atomic_size_t count;
  mem mem; /* a copy: the kernel may outlive its tn_ir */
  size_t bytes;
  char text[]; /* ends in NUL */
};

static size_t handle_bytes(size_t bytes) { return sizeof(tn_kernel) + bytes + 1; }

const char *kernel_handle_text(const tn_kernel *k, size_t *bytes) {
  *bytes = k->bytes;
  return k->text;
}

static tn_kernel *kernel_open(const mem *m, const char *text, size_t bytes) {
  tn_kernel *k = mem_alloc(m, handle_bytes(bytes));
  if (!k) return NULL;
  atomic_init(&k->count, 1);
  k->mem = *m;
  k->bytes = bytes;
  memcpy(k->text, text, bytes + 1);
  return k;
}

typedef struct making {
  tn_ir *ir;
  tn_node sink;
  const char *schedule;
  arena work;
  ir *trial; /* for the canonical copy, to which the schedule is applied */
  tn_kernel *made;
} making;

/** Verifies the kernel; an ill-formed one is an argument error of the caller. */
static void verify_kernel(const making *m) {
  diag *d = ir_diag(m->ir);
  tn_status s = verify_graph(&m->sink, 1, LEVEL_KERNEL, ir_mem(m->ir), d);
  if (s == TN_OK) return;
  if (s != TN_ERR_INTERNAL) diag_rethrow(d);
  d->status = TN_ERR_ARGUMENT;
  diag_rethrow(d);
}

/** A copy with canonical index arithmetic, as the compiler will see the kernel. */
static const node *copy_canonical(making *m) {
  const node *copy;
  m->trial = ir_new(ir_mem(m->ir), ir_diag(m->ir), false);
  if (!m->trial) diag_raise(ir_diag(m->ir), TN_ERR_MEMORY, "out of memory");
  ir_copy(m->trial, &m->work, &m->sink, 1, NULL, NULL, &copy);
  return copy;
}

/** The kernel with the schedule in printed form, after a trial run on the canonical copy. */
static const node *attach_schedule(making *m, const node *kernel) {
  size_t bytes = m->schedule ? strlen(m->schedule) : 0;
  const char *lines = m->schedule ? m->schedule : sink_schedule(m->sink, &bytes);
  if (!lines) return m->sink;
  law_schedule list = law_schedule_parse(&m->work, lines, bytes);
  laws l = {.g = m->trial};
  const node *made = law_schedule_apply(&l, kernel, &list);
  law_check_threads(ir_diag(m->trial), made);
  if (verify_graph(&made, 1, LEVEL_KERNEL, ir_mem(m->trial), ir_diag(m->trial)) != TN_OK)
    diag_rethrow(ir_diag(m->trial));
  str text = str_new(&m->work);
  law_schedule_print(&text, &list);
  return sink_with_schedule(m->ir, m->sink, str_text(&text), text.n);
}

static void make_kernel(void *arg) {
  making *m = arg;
  str text = str_new(&m->work);
  verify_kernel(m);
  const node *kernel = copy_canonical(m);
  kernel_signature_of(m->trial, &m->work, kernel);
  const node *sink = attach_schedule(m, kernel);
  print_graph(&text, &sink, 1);
  m->made = kernel_open(ir_mem(m->ir), str_text(&text), strlen(str_text(&text)));
  if (!m->made) diag_raise(ir_diag(m->ir), TN_ERR_MEMORY, "out of memory");
}

tn_status tn_kernel_make(tn_ir *ir, tn_node sink, const tn_kernel_desc *desc, tn_kernel **out) {
  static const tn_kernel_desc init = TN_KERNEL_DESC_INIT;
  if (out) *out = NULL;
  if (!ir) return TN_ERR_ARGUMENT;
  if (!desc) desc = &init;
  if (desc->size != sizeof *desc)
    return diag_set(ir_diag(ir), TN_ERR_ARGUMENT,
                    "tn_kernel_desc.size is %zu, not %zu; initialise it with TN_KERNEL_DESC_INIT",
                    desc->size, sizeof *desc);
  if (!sink || !out)
    return diag_set(ir_diag(ir), TN_ERR_ARGUMENT, "the %s is NULL",
                    sink ? "output pointer for the kernel" : "sink");
  making m = {.ir = ir, .sink = sink, .schedule = desc->schedule};
  arena_init(&m.work, ir_mem(ir), ir_diag(ir));
  tn_status s = diag_catch(ir_diag(ir), make_kernel, &m);
  ir_free(m.trial);
  arena_free(&m.work);
  *out = m.made;
  return s;
}

tn_kernel *tn_kernel_retain(tn_kernel *k) {
  if (k) atomic_fetch_add_explicit(&k->count, 1, memory_order_relaxed);
  return k;
}

void tn_kernel_free(tn_kernel *k) {
  if (!k || atomic_fetch_sub_explicit(&k->count, 1, memory_order_acq_rel) > 1) return;
  mem m = k->mem;
  mem_free(&m, k, handle_bytes(k->bytes));
}
