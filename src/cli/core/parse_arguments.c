/* Parses a command line from left to right, by the rows of the verb's table of options. The table
   says where each value goes in the struct of options, so verbs read plain members. */
#include "cli/core/parse_arguments.h"

#include "cli/core/text_format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/** A command line being parsed. */
typedef struct parser {
  command *c;
  char *const *next; /* argument to parse */
  char *const *end;
  bool *is_set; /* by option row */
} parser;

/* Look-up of options. */

static const option *find_option(const verb *v, const char *name, size_t length) {
  for (size_t i = 0; i < v->n_options; i++)
    if (strlen(v->options[i].name) == length && !memcmp(v->options[i].name, name, length))
      return &v->options[i];
  return NULL;
}

/** Finds the option that "-x" abbreviates. */
static const option *find_letter(const verb *v, const char *text) {
  if (!v->letters || !text[1] || text[2] || !strchr(v->letters, text[1])) return NULL;
  size_t i = 0;
  while (v->options[i].name[0] != text[1]) i++;
  return &v->options[i];
}

static _Noreturn void fail_unknown_option(command *c, const char *argument) {
  const verb *v = c->verb;
  arena *a = &c->arena;
  const char **names = arena_alloc(a, (v->n_options + 1) * sizeof *names);
  for (size_t i = 0; i < v->n_options; i++) names[i] = v->options[i].name;
  names[v->n_options] = "help";
  const char *word = argument + strspn(argument, "-");
  const char *near = text_nearest_word(arena_printf(a, "%.*s", (int)strcspn(word, "="), word),
                                       names, v->n_options + 1);
  if (near) near = arena_printf(a, "--%s", near);
  command_usage_error(c, "unknown option %s%s", argument, text_suggestion(a, near));
}

/* Values. */

/** Parses the value of --name=value (`equals` points to the sign) or --name value. Refuses an empty
    string: an empty folder would mean the root. */
static const char *parse_value(parser *p, const option *o, const char *equals) {
  bool has_value = equals || (p->next != p->end && strncmp(*p->next, "--", 2));
  const char *value = equals ? equals + 1 : has_value ? *p->next++ : "";
  if (!has_value || (o->kind == OPTION_STRING && !*value))
    command_usage_error(p->c, "--%s requires a value: --%s %s", o->name, o->name, o->value);
  return value;
}

static int64_t parse_number(command *c, const option *o, const char *text) {
  char *end;
  errno = 0;
  long long n = strtoll(text, &end, 10);
  int64_t unit = o->kind == OPTION_BYTES && end != text ? text_byte_multiplier(*end) : 1;
  if (unit > 1) end++;
  if (!*text || *end || errno || n < o->min || n > o->max / unit)
    command_usage_error(c, "--%s must be a number from %lld to %lld%s, not \"%s\"", o->name,
                        (long long)o->min, (long long)o->max,
                        o->kind == OPTION_BYTES ? ", with an optional suffix k, M, G or T" : "",
                        text);
  return n * unit;
}

static uint64_t parse_uint64(command *c, const option *o, const char *text) {
  errno = 0;
  unsigned long long n = strtoull(text, NULL, 10);
  bool are_digits = strspn(text, "0123456789") == strlen(text);
  if (!*text || !are_digits || errno)
    command_usage_error(c, "--%s must be a number from 0 to %llu, not \"%s\"", o->name,
                        (unsigned long long)UINT64_MAX, text);
  return n;
}

static void set_option(parser *p, const option *o, const char *equals) {
  command *c = p->c;
  void *member = (char *)c->options + o->offset;
  bool *is_set = &p->is_set[o - c->verb->options];
  if (*is_set && o->kind != OPTION_LIST)
    command_usage_error(c, "--%s is specified more than once", o->name);
  *is_set = true;
  if (o->kind == OPTION_FLAG) {
    if (equals) command_usage_error(c, "--%s does not take a value", o->name);
    *(bool *)member = true;
    return;
  }
  const char *value = parse_value(p, o, equals);
  switch (o->kind) {
  case OPTION_NUMBER:
  case OPTION_BYTES: *(int64_t *)member = parse_number(c, o, value); break;
  case OPTION_UINT64: *(uint64_t *)member = parse_uint64(c, o, value); break;
  case OPTION_STRING: *(const char **)member = value; break;
  default: vec_push(&c->arena, (option_list *)member, value);
  }
}

static void set_operand(command *c, const char *text) {
  if (!c->verb->operand) command_usage_error(c, "unexpected argument \"%s\"", text);
  if (c->operand)
    command_usage_error(c, "expected one %s, got \"%s\" and \"%s\"", c->verb->operand, c->operand,
                        text);
  c->operand = text;
}

static void set_defaults(command *c) {
  const verb *v = c->verb;
  c->options = arena_calloc(&c->arena, 1, v->options_bytes + 1);
  for (size_t i = 0; i < v->n_options; i++) {
    const option *o = &v->options[i];
    if (o->kind == OPTION_NUMBER || o->kind == OPTION_BYTES)
      *(int64_t *)(void *)((char *)c->options + o->offset) = o->default_value;
  }
}

static bool is_help(const char *text) { return !strcmp(text, "-h") || !strcmp(text, "--help"); }

/** Raises the log level for -v, and further for -vv or a second -v; false for other options. */
static bool raise_log_level(command *c, const char *text) {
  if (strcmp(text, "-v") != 0 && strcmp(text, "-vv") != 0) return false;
  bool is_debug = text[2] || c->log_level >= TN_LOG_INFO;
  c->log_level = is_debug ? TN_LOG_DEBUG : TN_LOG_INFO;
  return true;
}

/** Takes --backend FILE, which any verb may have several times; false for other options. */
static bool take_backend(parser *p, const char *text) {
  static const char name[] = "--backend";
  size_t n = sizeof name - 1;
  if (strncmp(text, name, n) != 0 || (text[n] && text[n] != '=')) return false;
  command *c = p->c;
  const char *file = text[n] ? text + n + 1 : p->next != p->end ? *p->next++ : "";
  if (!*file) command_usage_error(c, "option --backend needs a value");
  c->backends = c->backends ? arena_printf(&c->arena, "%s:%s", c->backends, file) : file;
  return true;
}

bool arguments_parse(command *c, int argc, char *const argv[]) {
  const verb *v = c->verb;
  set_defaults(c);
  parser p = {c, argv, argv + argc, arena_calloc(&c->arena, v->n_options + 1, sizeof(bool))};
  for (bool has_options = true; p.next != p.end;) {
    const char *text = *p.next++;
    if (!has_options || text[0] != '-' || !text[1]) {
      set_operand(c, text);
    } else if (!strcmp(text, "--")) {
      has_options = false;
    } else if (is_help(text)) {
      return false;
    } else if (!raise_log_level(c, text) && !take_backend(&p, text)) {
      const char *name = text + 2, *equals = strchr(text, '=');
      const option *o = find_letter(v, text);
      if (text[1] == '-') o = find_option(v, name, equals ? (size_t)(equals - name) : strlen(name));
      if (!o) fail_unknown_option(c, text);
      set_option(&p, o, equals);
    }
  }
  if (v->operand && v->operand[0] != '[' && !c->operand)
    command_usage_error(c, "missing argument %s", v->operand);
  return true;
}
