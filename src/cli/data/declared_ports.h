/* The inputs of the command's model as its file declares them, for a model that cannot be loaded.
 */
#ifndef TENON_CLI_DATA_DECLARED_PORTS_H
#define TENON_CLI_DATA_DECLARED_PORTS_H

#include "base/vec.h"
#include "cli/core/command.h"

typedef VEC(tn_port) port_list;

/** Lists the inputs, with the bounds that `desc` gives sizes. A size without a number is a variable
    of its own, or, with `shares_names`, one with the others of its name; the rank is −1 where the
    file declares none. Empty if the file cannot be read. */
port_list declared_ports_list(command *c, const tn_model_desc *desc, bool shares_names);

#endif
