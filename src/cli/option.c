#include "cli/option.h"

#include "cli/command.h"
#include "cli/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/** Command lines being read. */
typedef struct reader {
  command *c;
  char *const *at; /* the next argument */
  char *const *end;
  bool *seen; /* by row */
} reader;

static const option *find(const verb *v, const char *name, size_t length) {
  for (size_t i = 0; i < v->n_options; i++)
    if (strlen(v->options[i].name) == length && !memcmp(v->options[i].name, name, length))
      return &v->options[i];
  return NULL;
}

static _Noreturn void unknown(command *c, const char *argument) {
  const verb *v = c->verb;
  arena *a = &c->arena;
  const char **names = arena_alloc(a, (v->n_options + 1) * sizeof *names);
  for (size_t i = 0; i < v->n_options; i++) names[i] = v->options[i].name;
  names[v->n_options] = "help";
  const char *word = argument + strspn(argument, "-");
  const char *near =
      text_nearest(arena_printf(a, "%.*s", (int)strcspn(word, "="), word), names, v->n_options + 1);
  if (near) near = arena_printf(a, "--%s", near);
  command_misuse(c, "there is no option %s%s", argument, text_suggestion(a, near));
}

/** The option that "-x" stands for. */
static const option *find_letter(const verb *v, const char *text) {
  if (!v->letters || !text[1] || text[2] || !strchr(v->letters, text[1])) return NULL;
  size_t i = 0;
  while (v->options[i].name[0] != text[1]) i++;
  return &v->options[i];
}

/** The value of `--name=value` or `--name value`. Nothing has an empty name, and a folder of none
    would be the root. */
static const char *value_of(reader *r, const option *o, const char *equals) {
  bool given = equals || (r->at != r->end && strncmp(*r->at, "--", 2));
  const char *value = equals ? equals + 1 : given ? *r->at++ : "";
  if (!given || (o->kind == OPTION_TEXT && !*value))
    command_misuse(r->c, "--%s needs a value: --%s %s", o->name, o->name, o->value);
  return value;
}

static int64_t number_of(command *c, const option *o, const char *text) {
  char *end;
  errno = 0;
  long long n = strtoll(text, &end, 10);
  int64_t unit = o->kind == OPTION_BYTES && end != text ? text_byte_unit(*end) : 1;
  if (unit > 1) end++;
  if (!*text || *end || errno || n < o->min || n > o->max / unit)
    command_misuse(c, "--%s is a number from %lld to %lld%s, not \"%s\"", o->name,
                   (long long)o->min, (long long)o->max,
                   o->kind == OPTION_BYTES ? ", or as 64M" : "", text);
  return n * unit;
}

static uint64_t bits_of(command *c, const option *o, const char *text) {
  errno = 0;
  unsigned long long n = strtoull(text, NULL, 10);
  bool digits = strspn(text, "0123456789") == strlen(text);
  if (!*text || !digits || errno)
    command_misuse(c, "--%s is a number from 0 to %llu, not \"%s\"", o->name,
                   (unsigned long long)UINT64_MAX, text);
  return n;
}

static void set(reader *r, const option *o, const char *equals) {
  command *c = r->c;
  char *member = (char *)c->options + o->offset;
  bool *seen = &r->seen[o - c->verb->options];
  if (*seen && o->kind != OPTION_LIST) command_misuse(c, "--%s is given twice", o->name);
  *seen = true;
  if (o->kind == OPTION_FLAG) {
    if (equals) command_misuse(c, "--%s takes no value", o->name);
    *(bool *)(void *)member = true;
    return;
  }
  const char *value = value_of(r, o, equals);
  if (o->kind == OPTION_NUMBER || o->kind == OPTION_BYTES)
    *(int64_t *)(void *)member = number_of(c, o, value);
  else if (o->kind == OPTION_BITS)
    *(uint64_t *)(void *)member = bits_of(c, o, value);
  else if (o->kind == OPTION_TEXT)
    *(const char **)(void *)member = value;
  else
    vec_push(&c->arena, (option_list *)(void *)member, value);
}

static void set_operand(command *c, const char *text) {
  if (!c->verb->operand) command_misuse(c, "\"%s\" is one argument too many", text);
  if (c->operand)
    command_misuse(c, "one %s at a time: \"%s\" and \"%s\"", c->verb->operand, c->operand, text);
  c->operand = text;
}

static bool is_help(const char *text) { return !strcmp(text, "-h") || !strcmp(text, "--help"); }

static void set_defaults(command *c) {
  const verb *v = c->verb;
  c->options = arena_calloc(&c->arena, 1, v->options_bytes + 1);
  for (size_t i = 0; i < v->n_options; i++) {
    const option *o = &v->options[i];
    if (o->kind == OPTION_NUMBER || o->kind == OPTION_BYTES)
      *(int64_t *)(void *)((char *)c->options + o->offset) = o->otherwise;
  }
}

bool option_read(command *c, int argc, char *const argv[]) {
  const verb *v = c->verb;
  set_defaults(c);
  reader r = {c, argv, argv + argc, arena_calloc(&c->arena, v->n_options + 1, sizeof(bool))};
  for (bool options = true; r.at != r.end;) {
    const char *text = *r.at++;
    if (!options || text[0] != '-' || !text[1]) {
      set_operand(c, text);
    } else if (!strcmp(text, "--")) {
      options = false;
    } else if (is_help(text)) {
      return false;
    } else {
      const char *name = text + 2, *equals = strchr(text, '=');
      const option *o = find_letter(v, text);
      if (text[1] == '-') o = find(v, name, equals ? (size_t)(equals - name) : strlen(name));
      if (!o) unknown(c, text);
      set(&r, o, equals);
    }
  }
  if (v->operand && v->operand[0] != '[' && !c->operand)
    command_misuse(c, "%s is missing", v->operand);
  return true;
}
