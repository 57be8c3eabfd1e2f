/* Internal header of the schedules for teams of workers: teams.c and the files team_*.c. */
#ifndef TENON_CODEGEN_CHOOSE_TEAMS_H
#define TENON_CODEGEN_CHOOSE_TEAMS_H

#include "codegen/choose/choice.h"

/** team_kernel.c: bytes of the memory that a group shares: of its arrays, and of the trees of its
    reductions. */
double team_shared_bytes(const choice *c, const node *sink);

/** team_kernel.c: workers of a group along an axis of its digits; 0: the kernel has no such digit.
 */
int64_t team_side(const choice *c, int64_t axis);

/** team_kernel.c: makes a range a digit (NULL: of one index, which is none); false: refused. */
bool team_set_digit(choice *c, const node **range, range_kind kind, int64_t axis);

/** team_tiles.c: tiles a product, the STAGE of an output; false: the nest is none, or laws refuse,
   and it stays as it was. Nests of the remainders of open sizes may be added. */
bool choose_team_tile(choice *c, const node *stage);

#endif
