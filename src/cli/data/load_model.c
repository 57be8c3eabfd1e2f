/* Parses --size, the bounds of a model's dynamic sizes, and loads the model that is the command's
   operand. */
#include "cli/data/load_model.h"

#include "cli/core/text_format.h"

#include <stdlib.h>
#include <string.h>

static const char digits[] = "0123456789";

/** Parses the decimal number from `text` to `end`. */
static bool parse_number(const char *text, const char *end, int64_t *out) {
  enum { MAX_DIGITS = 18 }; /* always fit in int64_t */
  size_t n = (size_t)(end - text);
  if (!n || n > MAX_DIGITS || strspn(text, digits) < n) return false;
  *out = strtoll(text, NULL, 10);
  return *out <= TN_MODEL_SIZE_MAX;
}

/** Parses a number, or a range with at least one end. */
static bool parse_range(const char *text, tn_model_size *size) {
  const char *end = text + strlen(text), *dots = strstr(text, "..");
  if (!dots) return parse_number(text, end, &size->min) && parse_number(text, end, &size->max);
  bool has_min = text != dots, has_max = dots + 2 != end;
  return (has_min || has_max) && (!has_min || parse_number(text, dots, &size->min)) &&
         (!has_max || parse_number(dots + 2, end, &size->max)) && size->min <= size->max;
}

/** Cuts "@8" from the end of a text that is a number or a range, and parses it; false if it is no
    number from 1. */
static bool cut_likely(command *c, const char **text, int64_t *likely) {
  const char *at = strrchr(*text, '@');
  if (!at || (*text)[strspn(*text, "0123456789.")] != '@') return true;
  if (!parse_number(at + 1, at + strlen(at), likely) || !*likely) return false;
  *text = arena_printf(&c->arena, "%.*s", (int)(at - *text), *text);
  return true;
}

/** True if a likely value is absent or within a range. */
static bool fits_likely(const tn_model_size *size) {
  return !size->likely || (size->likely >= size->min && size->likely <= size->max);
}

static bool is_name(const char *text) {
  size_t sign = *text == '-';
  return !strstr(text, "..") && text[sign + strspn(text + sign, digits)];
}

static tn_model_size parse_size(command *c, const char *entry) {
  const char *equals = strrchr(entry, '=');
  if (!equals || equals == entry || !equals[1])
    command_usage_error(c, "--size must have the form " SIZE_OPTION_VALUE ", not \"%s\"", entry);
  tn_model_size size = TN_MODEL_SIZE_INIT;
  size.name = arena_printf(&c->arena, "%.*s", (int)(equals - entry), entry);
  const char *spec = equals + 1;
  bool is_likely_valid = cut_likely(c, &spec, &size.likely);
  bool is_likely_alone = is_likely_valid && size.likely && !*spec;
  if (is_likely_valid && *spec && is_name(spec))
    size.same = spec;
  else if (!is_likely_valid || (!is_likely_alone && !parse_range(spec, &size)) ||
           !fits_likely(&size))
    command_usage_error(
        c,
        "--size %s must be a number from 0 to %d, a nonempty range MIN..MAX, MIN.. "
        "or ..MAX, a value @LIKELY within it, or the name of another size, not \"%s\"",
        size.name, TN_MODEL_SIZE_MAX, equals + 1);
  return size;
}

tn_model_desc load_model_parse_sizes(command *c, const option_list *list) {
  tn_model_desc desc = TN_MODEL_DESC_INIT;
  tn_model_size *sizes = arena_alloc(&c->arena, (list->n + 1) * sizeof *sizes);
  for (size_t i = 0; i < list->n; i++) sizes[i] = parse_size(c, list->at[i]);
  desc.sizes = sizes;
  desc.n_sizes = list->n;
  desc.about_sizes = arena_calloc(&c->arena, 1, sizeof *desc.about_sizes);
  return desc;
}

void load_model_parse_variants(command *c, const char *name, tn_model_desc *desc) {
  static const char *const names[] = {[TN_VARIANTS_AUTO] = "auto",
                                      [TN_VARIANTS_STEADY] = "steady",
                                      [TN_VARIANTS_EXACT] = "exact",
                                      [TN_VARIANTS_ONE] = "one"};
  size_t n = sizeof names / sizeof *names, i = 0;
  if (!name) return;
  while (i < n && strcmp(names[i], name)) i++;
  if (i == n)
    command_usage_error(c, "--variants must be auto, steady, exact or one, not \"%s\"%s", name,
                        text_suggestion(&c->arena, text_nearest_word(name, names, n)));
  desc->variants = (tn_variants)i;
}

void load_model_advise(command *c, const tn_model_desc *desc) {
  if (*desc->about_sizes)
    c->hint = "--size " SIZE_OPTION_VALUE
              " fixes, bounds or equates a size: NAME=8, NAME=3..64, NAME=OTHER";
}

const char *load_model_path(const char *name) { return strcmp(name, "-") ? name : "/dev/stdin"; }

tn_status load_model(command *c, const tn_model_desc *desc, const file_map *read, tn_model **m) {
  tn_status s = read ? tn_model_load_bytes(c->context, read->data, read->bytes, desc, m)
                     : tn_model_load(c->context, load_model_path(c->operand), desc, m);
  progress_clear(&c->progress);
  bool is_unnamed = desc->name && !*desc->name;
  if (s == TN_ERR_ARGUMENT && desc->n_sizes)
    command_usage_error(c, "--size: %s%s%s", is_unnamed ? load_model_path(c->operand) : "",
                        is_unnamed ? ": " : "", tn_message(c->context));
  return s;
}

const char *load_model_exact_text(command *c, const tn_model *m) {
  const char *why = tn_model_exact_sizes(m);
  if (!why) return NULL;
  return arena_printf(&c->arena, "%s, because of %s",
                      tn_model_open_from_one(m)
                          ? "sizes stay open from 1 on, and are known exactly at a run with a 0"
                          : "sizes are known exactly at each run",
                      why);
}
