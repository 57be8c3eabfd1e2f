/* Table of ONNX operators (onnx_operators.def), and the look-up of rows, versions and attributes.
   Versions and attributes stay texts, parsed at each look-up: models have few nodes. */
#include "formats/onnx/ops/op_table.h"

#include "formats/onnx/ops/onnx_builders.h"

#include <stdlib.h>
#include <string.h>

/* Domains of rows of ONNX_OP_OF. */
#define DOMAIN_ml        "ai.onnx.ml"
#define DOMAIN_preview   "ai.onnx.preview"
#define DOMAIN_training  "ai.onnx.preview.training"
#define DOMAIN_microsoft "com.microsoft"

static const onnx_op table[] = {
#define ONNX_OP(name, versions, attributes, min_inputs, max_inputs, max_outputs) \
  {"", #name, versions, attributes, min_inputs, max_inputs, max_outputs, onnx_##name},
#define ONNX_OP_OF(domain, name, versions, attributes, min_inputs, max_inputs, max_outputs) \
  {DOMAIN_##domain, #name,      versions,    attributes,                                    \
   min_inputs,      max_inputs, max_outputs, onnx_##domain##_##name},
#include "formats/onnx/ops/onnx_operators.def"
#undef ONNX_OP
#undef ONNX_OP_OF
};

enum { ROWS = sizeof table / sizeof *table };

const onnx_op *op_table_rows(size_t *n) {
  *n = ROWS;
  return table;
}

static const char *row_domain(const char *domain) {
  return strcmp(domain, "ai.onnx") ? domain : "";
}

/** Models have many nodes and the table many rows: most differ in the first letter. */
static bool has_name(const onnx_op *row, const char *name) {
  return *row->name == *name && !strcmp(row->name, name);
}

const onnx_op *op_table_find(const char *domain, const char *name) {
  for (size_t i = 0; i < ROWS; i++)
    if (has_name(&table[i], name) && !strcmp(table[i].domain, row_domain(domain))) return &table[i];
  return NULL;
}

const onnx_op *op_table_find_elsewhere(const char *domain, const char *name) {
  for (size_t i = 0; i < ROWS; i++)
    if (has_name(&table[i], name) && strcmp(table[i].domain, row_domain(domain)) != 0)
      return &table[i];
  return NULL;
}

bool op_table_has_domain(const char *domain) {
  for (size_t i = 0; i < ROWS; i++)
    if (!strcmp(table[i].domain, row_domain(domain))) return true;
  return false;
}

int64_t op_table_version(const onnx_op *row, int64_t opset) {
  int64_t best = 0;
  for (const char *text = row->versions; *text;) {
    char *end;
    int64_t version = strtoll(text, &end, 10);
    if (version <= opset && version > best) best = version;
    text = *end ? end + 1 : end;
  }
  return best;
}

bool op_table_has_attribute(const onnx_op *row, const char *name) {
  size_t n = strlen(name);
  for (const char *text = strstr(row->attributes, name); text; text = strstr(text + 1, name)) {
    bool is_start = text == row->attributes || text[-1] == ' ';
    if (is_start && (!text[n] || strchr(" !", text[n]))) return true;
  }
  return false;
}

/** Parses the mark after an attribute's name: "!" is required, "!1,11" in these versions. */
static bool is_required(const char *mark, int64_t version) {
  if (*mark != '!') return false;
  bool found = !mark[1] || mark[1] == ' ';
  for (char *end; !found && (*mark == '!' || *mark == ','); mark = end)
    found = strtoll(mark + 1, &end, 10) == version;
  return found;
}

static bool node_has_attribute(const onnx_node *n, const char *name, size_t length) {
  for (size_t i = 0; i < n->attributes.n; i++) {
    const char *other = n->attributes.at[i].name;
    if (strlen(other) == length && !memcmp(other, name, length)) return true;
  }
  return false;
}

const char *op_table_missing_attribute(const onnx_op *row, int64_t version, const onnx_node *n,
                                       size_t *length) {
  for (const char *name = row->attributes; *name;
       name += strcspn(name, " "), name += *name == ' ') {
    *length = strcspn(name, " !");
    if (is_required(name + *length, version) && !node_has_attribute(n, name, *length)) return name;
  }
  return NULL;
}
