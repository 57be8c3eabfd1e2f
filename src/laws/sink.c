#include "laws/laws.h"

#include "ir/verify.h"

/** A pin is open wherever the binder is read, and no vector inside of a vector, or the kernel is
    ill-formed. */
static bool is_well_formed(laws *l, const node *sink) {
  diag d = {0};
  tn_status s = verify(&sink, 1, STAGE_KERNEL, ir_mem(l->g), &d);
  if (s == TN_ERR_MEMORY) diag_raise(ir_diag(l->g), s, "%s", d.text);
  return s == TN_OK;
}

const node *law_sink(laws *l, const node *sink, const node *binder, const node *range) {
  if (binder->op != OP_STAGE && binder->op != OP_FOLD) return law_refuse(l, "no STAGE or FOLD");
  node_list order = topo_sort(ir_arena(l->g), &sink, 1, NULL, NULL);
  const char *why = law_reader_objection(&order, binder);
  if (why) return law_refuse(l, why);
  if (node_is_free_in(range, binder)) return law_refuse(l, "it runs inside of the range already");
  if (range_kind_of(range) != KIND_LOOP) return law_refuse(l, "the range is no loop");
  if (law_reads_written(l, sink, binder)) return law_refuse(l, "the kernel writes to the buffer");
  const node *made = law_replace(l, sink, binder, binder_with_pin(l->g, binder, range));
  if (!is_well_formed(l, made))
    return law_refuse(l, "it is read outside of the range, or a vector would run inside a vector");
  law_args args = {.subject = binder, .other = range};
  return law_made(l, sink, made, LAW_SINK, &args, NULL);
}
