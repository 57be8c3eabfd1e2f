/* Table of ONNX operators (onnx_operators.def), and the look-up of a node's row by name and
 * version. */
#include "formats/onnx/ops/op_table.h"

#include "formats/onnx/ops/onnx_builders.h"

#include <stdlib.h>
#include <string.h>

static const onnx_op table[] = {
#define ONNX_OP(name, versions, attributes, least, most, outputs) \
  {#name, versions, attributes, least, most, outputs, onnx_##name},
#include "formats/onnx/ops/onnx_operators.def"
#undef ONNX_OP
};

enum { ROWS = sizeof table / sizeof *table };

const onnx_op *op_table_rows(size_t *n) {
  *n = ROWS;
  return table;
}

const onnx_op *op_table_find(const char *name) {
  for (size_t i = 0; i < ROWS; i++)
    if (!strcmp(table[i].name, name)) return &table[i];
  return NULL;
}

int64_t op_table_version(const onnx_op *row, int64_t opset) {
  int64_t best = 0;
  for (const char *at = row->versions; *at;) {
    char *end;
    int64_t v = strtoll(at, &end, 10);
    if (v <= opset && v > best) best = v;
    at = *end ? end + 1 : end;
  }
  return best;
}

/** The text after an attribute's name in its row, where its mark stands; NULL: no such attribute.
 */
static const char *find_mark(const onnx_op *row, const char *name) {
  size_t n = strlen(name);
  for (const char *at = strstr(row->attributes, name); at; at = strstr(at + 1, name)) {
    bool begins = at == row->attributes || at[-1] == ' ';
    if (begins && (!at[n] || strchr(" !", at[n]))) return at + n;
  }
  return NULL;
}

bool op_table_has_attribute(const onnx_op *row, const char *name) { return find_mark(row, name); }

static bool is_required(const char *mark, int64_t version) {
  if (*mark != '!') return false;
  bool found = !mark[1] || mark[1] == ' ';
  for (char *end; !found && (*mark == '!' || *mark == ','); mark = end)
    found = strtoll(mark + 1, &end, 10) == version;
  return found;
}

static bool node_has_attribute(const onnx_node *n, const char *name, size_t length) {
  for (size_t i = 0; i < n->attributes.n; i++) {
    const char *own = n->attributes.at[i].name;
    if (strlen(own) == length && !memcmp(own, name, length)) return true;
  }
  return false;
}

const char *op_table_missing_attribute(const onnx_op *row, int64_t version, const onnx_node *n,
                                       size_t *length) {
  for (const char *at = row->attributes; *at; at += strcspn(at, " "), at += *at == ' ') {
    *length = strcspn(at, " !");
    if (is_required(at + *length, version) && !node_has_attribute(n, at, *length)) return at;
  }
  return NULL;
}
