/* How a kernel runs on a target: nests cut where other pieces begin, and in vectors, with what is
   left over in nests of their own; long sums in blocks; tiles in registers; an outer range over
   threads where there is enough to do. */
#include "codegen/choice.h"
#include "codegen/codegen.h"

const node *codegen_choose(ir *g, const node *sink, const codegen_options *o) {
  choice c = {.laws = {.g = g}, .target = &o->target, .math = o->math, .sink = sink};
  if (o->watch.law) c.laws.log = law_log_new(g);
  choose_pieces(&c);
  choose_flat(&c);
  choose_blocks(&c);
  choose_vectors(&c);
  if (o->math & MATH_SUM) c.sink = codegen_sums(&c.laws, c.sink);
  choose_tiles(&c);
  choose_shares(&c);
  if (o->watch.law) law_log_tell(c.laws.log, sink, c.sink, o->watch.law, o->watch.user);
  return c.sink;
}
