/* ONNX's layout of test data: a folder with input_0.pb … and output_0.pb …, a tensor each, in the
   order of a model's inputs and outputs. */
#ifndef TENON_CLI_TESTSET_H
#define TENON_CLI_TESTSET_H

#include "cli/feed.h"

/** The file of the `i`-th input or output. */
const char *testset_path(command *c, const char *folder, tn_port_kind kind, size_t i);

/** Whether a folder has such files. */
bool testset_is(command *c, const char *folder);

/** An array for each input, or expected one for each output, of a model. Raises with the file's
    name where one is missing, too many, damaged, or of another type. */
feeds testset_read(command *c, const char *folder, const tn_model *m, tn_port_kind kind);

/** Writes an array as the `i`-th output's. */
void testset_write(command *c, const char *folder, size_t i, const char *name, const array *a);

#endif
