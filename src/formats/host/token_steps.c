/* Implements the host steps that take strings apart into tokens. Each pattern has a level, which
   holds the piece that it takes apart; pieces of the last one are tokens. */
#include "formats/host/token_steps.h"

/** A piece of a string that a pattern takes apart. */
typedef struct level {
  regex_text text;
  size_t from; /* the byte at which the rest begins; beyond the end: nothing is left */
} level;

/** The search for tokens of one string after the other. */
typedef struct tokenizer {
  const token_options *o;
  void *scratch;
  level *levels;
  size_t depth; /* of the level at hand, from 1; 0: the string has no more tokens */
  int error;    /* of a search, negative */
} tokenizer;

static bool begins_point(char c) { return ((unsigned char)c & 0xc0) != 0x80; }

/** The end of the code point at a byte. */
static size_t point_end(const regex_text *t, size_t at) {
  for (at++; at < t->n && !begins_point(t->at[at]);) at++;
  return at;
}

static bool is_long_enough(const tokenizer *k, const char *at, size_t n) {
  int64_t points = 0;
  for (size_t i = 0; i < n && points < k->o->least; i++) points += begins_point(at[i]);
  return points >= k->o->least;
}

/** The next piece of a level, of any length; false if there is none, or a search fails. */
static bool next_piece(tokenizer *k, level *l, const regex *pattern, const char **at, size_t *n) {
  regex_text *t = &l->text;
  if (l->from > t->n) return false;
  int found = regex_find(pattern, k->scratch, t, l->from);
  if (found < 0) k->error = found;
  if (found < 0 || (!found && k->o->are_tokens)) return false;
  size_t begin = k->o->are_tokens ? t->start : l->from;
  size_t end = k->o->are_tokens ? t->end : found ? t->start : t->n;
  *at = t->at + begin;
  *n = end - begin;
  l->from = !found ? t->n + 1 : t->end > t->start ? t->end : point_end(t, t->end);
  return true;
}

static void enter(tokenizer *k, const char *at, size_t n) {
  k->levels[k->depth++] = (level){.text = {.at = at, .n = n}};
}

/** The next token of the string; false if there is none, or a search fails. */
static bool next_token(tokenizer *k, const char **at, size_t *n) {
  while (k->depth && !k->error) {
    if (!next_piece(k, &k->levels[k->depth - 1], k->o->patterns[k->depth - 1], at, n)) {
      k->depth--;
      continue;
    }
    if (!is_long_enough(k, *at, *n)) continue;
    if (k->depth == k->o->n) return true;
    enter(k, *at, *n);
  }
  return false;
}

/* Steps. */

static tn_status open_tokenizer(tokenizer *k, const token_options *o, string_table *t,
                                tn_failure *f) {
  *k = (tokenizer){.o = o, .scratch = regex_scratch_open(o->patterns[0])};
  k->levels = mem_calloc(string_table_mem(t), o->n, sizeof *k->levels);
  return k->scratch && k->levels ? TN_OK : tn_fail(f, TN_ERR_MEMORY, "out of memory");
}

static void close_tokenizer(tokenizer *k, string_table *t) {
  regex_scratch_close(k->o->patterns[0], k->scratch);
  mem_free(string_table_mem(t), k->levels, k->o->n * sizeof *k->levels);
}

static tn_status begin_string(tokenizer *k, string_table *t, int64_t number, tn_failure *f) {
  size_t n;
  const char *at = string_table_get(t, number, &n);
  if (!at)
    return tn_fail(f, TN_ERR_ARGUMENT, "%lld is the number of no string of the model",
                   (long long)number);
  k->depth = 0;
  enter(k, at, n);
  return TN_OK;
}

static tn_status count_most(tokenizer *k, string_table *t, const host_arrays *a, tn_failure *f) {
  const int64_t *x = a->data[0];
  int64_t most = 0;
  for (size_t i = 0; i < a->bytes[0] / sizeof *x; i++) {
    const char *at;
    size_t n;
    int64_t tokens = 0;
    tn_status s = begin_string(k, t, x[i], f);
    if (s != TN_OK) return s;
    while (next_token(k, &at, &n)) tokens++;
    if (k->error) return regex_fail(k->o->patterns[0], k->error, i, f);
    if (tokens > most) most = tokens;
  }
  *(int64_t *)a->data[1] = most && k->o->has_marks ? most + 2 : most;
  return TN_OK;
}

tn_status token_count_most(const void *options, string_table *t, const host_arrays *a,
                           tn_failure *f) {
  tokenizer k;
  tn_status s = open_tokenizer(&k, options, t, f);
  if (s == TN_OK) s = count_most(&k, t, a, f);
  close_tokenizer(&k, t);
  return s;
}

/** Writes the tokens of a string, with its marks, as far as there is room. */
static tn_status write_tokens(tokenizer *k, string_table *t, size_t i, int64_t *out, size_t room,
                              tn_failure *f) {
  const token_options *o = k->o;
  const char *at;
  size_t n, used = 0;
  if (o->has_marks && room) out[used++] = o->begin;
  while (used + o->has_marks < room && next_token(k, &at, &n))
    if ((out[used++] = string_table_add(t, at, n)) < 0)
      return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  if (k->error) return regex_fail(o->patterns[0], k->error, i, f);
  if (o->has_marks && used < room) out[used++] = o->end;
  while (used < room) out[used++] = o->padding;
  return TN_OK;
}

static tn_status split_all(tokenizer *k, string_table *t, const host_arrays *a, tn_failure *f) {
  const int64_t *x = a->data[0];
  int64_t *out = a->data[1];
  size_t strings = a->bytes[0] / sizeof *x;
  size_t room = strings ? a->bytes[1] / sizeof *out / strings : 0;
  tn_status s = TN_OK;
  for (size_t i = 0; i < strings && s == TN_OK; i++) {
    s = begin_string(k, t, x[i], f);
    if (s == TN_OK) s = write_tokens(k, t, i, out + i * room, room, f);
  }
  return s;
}

tn_status token_split(const void *options, string_table *t, const host_arrays *a, tn_failure *f) {
  tokenizer k;
  tn_status s = open_tokenizer(&k, options, t, f);
  if (s == TN_OK) s = split_all(&k, t, a, f);
  close_tokenizer(&k, t);
  return s;
}

void token_close(const void *options) {
  const token_options *o = options;
  for (size_t i = 0; i < o->n; i++) regex_close(o->patterns[i]);
}
