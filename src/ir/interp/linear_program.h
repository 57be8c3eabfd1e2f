/* Internal header of the interpreter of linear programs: a decoded program, which one worker runs,
   and what a team of workers adds to it. */
#ifndef TENON_IR_INTERP_LINEAR_PROGRAM_H
#define TENON_IR_INTERP_LINEAR_PROGRAM_H

#include "base/map.h"
#include "base/vec.h"
#include "ir/interp/interp.h"

/** The memory of a PARAM, or of an ALLOC with a flag for each element that was written. */
typedef struct storage {
  const node *n;
  dtype dtype;
  uint16_t lanes; /* of a register; 1 for other storage */
  char *data;
  uint8_t *written;         /* by scalar; NULL: a param, which is written throughout */
  size_t count;             /* scalars */
  size_t owned;             /* bytes allocated for `data` and `written`; 0: they are the caller's */
  uint32_t serial;          /* the loop around the ALLOC; 0: none */
  bool is_shared;           /* by workers of a team: the memory is the team's */
  struct team_memory *seen; /* by which workers its elements are accessed; NULL: by one alone */
} storage;

/** The value of a node. */
typedef struct slot {
  size_t at; /* position of its first lane in the table of values */
  uint16_t lanes;
  bool invalid; /* the address of no element */
  /* The load of an element that was not written, on which the value depends, NULL: none; and the
     element. Such a value may be computed, as loads move out of loops that have no iteration, but
     not be stored, nor decide anything. */
  const struct step *unwritten;
  size_t unwritten_at;
  uint32_t defined; /* serial of the loop in which it has a value, + 1; 0: not defined yet */
} slot;

typedef enum step_kind {
  STEP_OPEN,
  STEP_CLOSE,
  STEP_ALLOC,
  STEP_LOAD,
  STEP_STORE,
  STEP_WAIT,
  STEP_AFFINE,
  STEP_VECTORIZE,
  STEP_EXTRACT,
  STEP_SPLAT,
  STEP_OP,
  STEP_TILE,
  STEP_WARP_TILE,
  STEP_BARRIER
} step_kind;

/** One decoded instruction. */
typedef struct step {
  step_kind kind;
  const node *n;
  uint32_t to, n_from;  /* the slot that it defines; number of operands */
  const uint32_t *from; /* slots of the operands; where a team meets, then of the loops around */
  storage *storage;     /* that it allocates, loads from or stores to */
  size_t jump;          /* OPEN: the step of the loop's end; CLOSE: that of its beginning */
  int64_t limit;        /* OPEN: trips of the running loop */
} step;

/** An open loop while instructions are decoded. */
typedef struct loop {
  const node *range;
  uint32_t serial; /* number of the loop, from 1 */
  size_t open;     /* its first step */
} loop;

/** Places of nodes while instructions are decoded. */
typedef struct decoder {
  VEC(loop) loops;      /* open ones, the innermost last */
  map number;           /* node → slot + 1 */
  map stored;           /* PARAM, ALLOC → storage */
  uint32_t next_serial; /* loops opened so far */
} decoder;

/** An element that a worker stores while it goes on. */
typedef struct copied_element {
  const struct step *store;
  size_t at; /* scalar of the store's storage */
  uint64_t bits;
  uint64_t group; /* number of the WAITs before it */
} copied_element;

typedef struct program {
  const interp_env *e;
  const node *linear;
  int64_t core_id, core_count;
  diag *d;
  arena work;
  decoder decoding;
  VEC(step) steps;
  VEC(slot) slots;
  VEC(uint64_t) values;    /* one a lane */
  VEC(storage *) storages; /* whose memory is freed at the end */
  uint64_t *args;          /* operands of an AFFINE */
  size_t next;             /* the step to go on with */
  struct team *team;       /* that it is a worker of; NULL: it runs alone */
  int64_t worker;
  VEC(uint32_t) group_slots;  /* of the number of the group */
  VEC(copied_element) copies; /* that may not be there yet, in order */
  uint64_t waits;             /* passed so far */
} program;

/* interp_linear.c */

_Noreturn void linear_ill_formed(const program *p, const node *n, const char *what);

/** Fills the steps and tables of a program. */
void linear_decode(program *p);

/** Runs a program on from its next step, up to its end (true) or, in a team, to behind a barrier.
 */
bool linear_run(program *p);

void linear_free(program *p);

/** The first lane of a step's operand. */
uint64_t *linear_operand(const program *p, const step *s, uint32_t i);

/* interp_teams.c */

/** Gives an array that workers share its memory, once for each group or warp. */
void team_alloc(program *p, storage *m);

/** Notes that a step reads an element, or writes it with some bits; raises if another worker's
   access is not parted from it by a barrier. Groups may store elements that overlapping blocks have
   in common, with equal bits. */
void team_note_read(program *p, const step *s, size_t at);
void team_note_write(program *p, const step *s, size_t at, uint64_t bits);

/** Notes that an element is being copied (`begins`), which nobody accesses until it is there. */
void team_note_copy(program *p, const step *s, size_t at, bool begins);

#endif
