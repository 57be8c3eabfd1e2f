#include "cli/load.h"

#include "formats/onnx/import.h"

#include <stdlib.h>
#include <string.h>

static const char digits[] = "0123456789";

/** A number up to `end`. */
static bool read_number(const char *text, const char *end, int64_t *out) {
  enum { LONGEST = 18 }; /* any number of so many digits fits */
  size_t n = (size_t)(end - text);
  if (!n || n > LONGEST || strspn(text, digits) < n) return false;
  *out = strtoll(text, NULL, 10);
  return *out <= IMPORT_SIZE_MAX;
}

/** A number, or a range that may have no end on one side. */
static bool read_range(const char *text, tn_model_size *size) {
  const char *end = text + strlen(text), *dots = strstr(text, "..");
  if (!dots) return read_number(text, end, &size->min) && read_number(text, end, &size->max);
  size->max = IMPORT_SIZE_MAX;
  bool low = text != dots, high = dots + 2 != end;
  return (low || high) && (!low || read_number(text, dots, &size->min)) &&
         (!high || read_number(dots + 2, end, &size->max)) && size->min <= size->max;
}

static bool is_name(const char *text) {
  size_t sign = *text == '-';
  return !strstr(text, "..") && text[sign + strspn(text + sign, digits)];
}

static tn_model_size read_size(command *c, const char *entry) {
  const char *equals = strrchr(entry, '=');
  if (!equals || equals == entry || !equals[1])
    command_misuse(c, "--size is given as " LOAD_SIZE_VALUE ", not as \"%s\"", entry);
  tn_model_size size = {.name = arena_printf(&c->arena, "%.*s", (int)(equals - entry), entry)};
  if (is_name(equals + 1))
    size.same = equals + 1;
  else if (!read_range(equals + 1, &size))
    command_misuse(c,
                   "--size %s is a number from 0 to %d, a range MIN..MAX, MIN.. or ..MAX of "
                   "such, not empty, or another size's name, not \"%s\"",
                   size.name, IMPORT_SIZE_MAX, equals + 1);
  return size;
}

tn_model_desc load_sizes(command *c, const option_list *list) {
  tn_model_desc desc = TN_MODEL_DESC_INIT;
  tn_model_size *sizes = arena_alloc(&c->arena, (list->n + 1) * sizeof *sizes);
  for (size_t i = 0; i < list->n; i++) sizes[i] = read_size(c, list->at[i]);
  desc.sizes = sizes;
  desc.n_sizes = list->n;
  return desc;
}

const char *load_path(const char *name) { return strcmp(name, "-") ? name : "/dev/stdin"; }

tn_status load_model(command *c, const tn_model_desc *desc, const file_map *read, tn_model **m) {
  tn_status s = read ? tn_model_load_bytes(c->context, read->data, read->bytes, desc, m)
                     : tn_model_load(c->context, load_path(c->operand), desc, m);
  progress_clear(&c->progress);
  if (s == TN_ERR_ARGUMENT && desc->n_sizes)
    command_misuse(c, "--size: %s", tn_message(c->context));
  return s;
}
