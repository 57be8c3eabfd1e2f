#include "cli/drawing.h"

#include "cli/page.h"
#include "cli/text.h"

#include <stdlib.h>

/* Steps lie in layers: each in the first one below all that it reads. What is read further below
   passes the layers in between, and has a place there too. In its layer everything lies about where
   what it comes from does. */

enum {
  BOX_WIDE = 220,
  BOX_HIGH = 44,
  PASS_WIDE = 6,
  GAP_WIDE = 18,
  GAP_HIGH = 36,
  MARGIN = 10,
  SHOWN = 24,
  MOST_SPOTS = 200000 /* beyond which nothing passes layers: lines go straight */
};

/** A step, or where something passes a layer. */
typedef struct spot {
  size_t number, layer;
  double wide, left;
  double wish; /* where its middle would like to be */
} spot;

typedef VEC(spot *) spots;

typedef struct drawing {
  arena *arena;
  const explanation *x;
  spot **at;     /* of each step */
  spot **passes; /* of each step: its spots in the layers below, one after another; NULL: none */
  size_t n, n_spots, n_layers;
  spots *layers;
  double wide;
} drawing;

static double middle(const spot *s) { return s->left + s->wide / 2; }
static double top(const spot *s) { return MARGIN + (double)s->layer * (BOX_HIGH + GAP_HIGH); }

/** Where what a step makes is in a layer below it. */
static const spot *passing(const drawing *d, size_t step, size_t layer) {
  const spot *s = d->at[step];
  return layer == s->layer || !d->passes[step] ? s : &d->passes[step][layer - s->layer - 1];
}

static spot *new_spots(drawing *d, size_t n) {
  d->n_spots += n;
  return arena_calloc(d->arena, n, sizeof(spot));
}

static void find_layers(drawing *d, size_t last_read[]) {
  for (size_t i = 0; i < d->n; i++) {
    const explained_step *s = &d->x->steps.at[i];
    spot *to = d->at[i] = new_spots(d, 1);
    *to = (spot){.number = i, .wide = BOX_WIDE};
    for (size_t k = 0; k < s->reads.n; k++)
      if (s->reads.at[k] < i && d->at[s->reads.at[k]]->layer >= to->layer)
        to->layer = d->at[s->reads.at[k]]->layer + 1;
    for (size_t k = 0; k < s->reads.n; k++)
      if (last_read[s->reads.at[k]] < to->layer) last_read[s->reads.at[k]] = to->layer;
    if (to->layer >= d->n_layers) d->n_layers = to->layer + 1;
  }
}

static void add_to_layer(drawing *d, spot *s) { vec_push(d->arena, &d->layers[s->layer], s); }

static void fill_layers(drawing *d, const size_t last_read[]) {
  for (size_t i = 0; i < d->n; i++) {
    size_t first = d->at[i]->layer + 1, n = last_read[i] > first ? last_read[i] - first : 0;
    add_to_layer(d, d->at[i]);
    if (!n || d->n_spots + n > MOST_SPOTS) continue;
    d->passes[i] = new_spots(d, n);
    for (size_t k = 0; k < n; k++) {
      d->passes[i][k] = (spot){.number = d->n + i, .layer = first + k, .wide = PASS_WIDE};
      add_to_layer(d, &d->passes[i][k]);
    }
  }
}

static double wish_of(const drawing *d, const spot *s) {
  if (s->number >= d->n) return middle(passing(d, s->number - d->n, s->layer - 1));
  const explained_step *step = &d->x->steps.at[s->number];
  double sum = 0;
  if (!s->layer) return 0;
  for (size_t k = 0; k < step->reads.n; k++)
    sum += middle(passing(d, step->reads.at[k], s->layer - 1));
  return sum / (double)step->reads.n;
}

static int by_wish(const void *a, const void *b) {
  const spot *x = *(spot *const *)a, *y = *(spot *const *)b;
  if (x->wish != y->wish) return x->wish < y->wish ? -1 : 1;
  return (x->number > y->number) - (x->number < y->number);
}

static void place_layer(drawing *d, spots *layer) {
  double left = MARGIN;
  for (size_t i = 0; i < layer->n; i++) layer->at[i]->wish = wish_of(d, layer->at[i]);
  qsort(layer->at, layer->n, sizeof *layer->at, by_wish);
  for (size_t i = 0; i < layer->n; i++) {
    spot *s = layer->at[i];
    s->left = s->wish - s->wide / 2 > left ? s->wish - s->wide / 2 : left;
    left = s->left + s->wide + GAP_WIDE;
  }
  if (left > d->wide) d->wide = left;
}

static void lay_out(drawing *d) {
  size_t *last_read = arena_calloc(d->arena, d->n + 1, sizeof *last_read);
  d->at = arena_calloc(d->arena, d->n + 1, sizeof *d->at);
  d->passes = arena_calloc(d->arena, d->n + 1, sizeof *d->passes);
  find_layers(d, last_read);
  d->layers = arena_calloc(d->arena, d->n_layers + 1, sizeof *d->layers);
  fill_layers(d, last_read);
  for (size_t i = 0; i < d->n_layers; i++) place_layer(d, &d->layers[i]);
}

/** From below one step to above another. */
static void add_edge(drawing *d, str *s, size_t from, size_t to) {
  const spot *a = d->at[from], *b = d->at[to];
  size_t first = d->passes[from] ? a->layer + 1 : b->layer;
  double x = middle(a), y = top(a) + BOX_HIGH;
  str_addf(s, "<path d=\"M%.0f %.0f", x, y);
  for (size_t layer = first; layer <= b->layer; layer++) {
    const spot *next = layer < b->layer ? passing(d, from, layer) : b;
    double x2 = middle(next), y2 = top(next);
    str_addf(s, "C%.0f %.0f %.0f %.0f %.0f %.0f", x, y + GAP_HIGH / 2, x2, y2 - GAP_HIGH / 2, x2,
             y2);
    x = x2, y = y2 + BOX_HIGH;
    if (layer < b->layer) str_addf(s, "V%.0f", y);
  }
  str_add(s, "\"/>");
}

/** A name's beginning, in whole characters. */
static const char *shortened(arena *a, const char *name) {
  const char *safe = text_safe(a, name);
  size_t n = 0, bytes = 0;
  for (; safe[bytes] && n <= SHOWN; bytes++) n += (safe[bytes] & 0xc0) != 0x80;
  if (n <= SHOWN) return safe;
  return arena_printf(a, "%.*s…", (int)(bytes - 1), safe);
}

static void add_box(drawing *d, str *s, const profile_step *p, size_t i) {
  double x = d->at[i]->left, y = top(d->at[i]);
  const char *kind = d->x->steps.at[i].is_output ? " class=\"output\"" : "";
  str_addf(s, "<a href=\"#step-%zu\"><title>", i + 1);
  page_text(s, p->facts.name);
  str_addf(s,
           "</title><rect x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\" rx=\"6\"%s/>"
           "<rect class=\"heat\" x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\" rx=\"6\" "
           "style=\"opacity:%.2f\"/><text x=\"%.0f\" y=\"%.0f\">",
           x, y, BOX_WIDE, BOX_HIGH, kind, x, y, BOX_WIDE, BOX_HIGH, 0.7 * p->share, x + 10,
           y + 18);
  page_text(s, shortened(d->arena, p->facts.name));
  str_addf(s, "</text><text class=\"small\" x=\"%.0f\" y=\"%.0f\">%zu · %s · %.1f %%</text></a>",
           x + 10, y + 35, i + 1, text_time(s->arena, p->ms), 100 * p->share);
}

void drawing_add(str *s, const profile *p, const explanation *x) {
  drawing d = {.arena = s->arena, .x = x, .n = x->steps.n};
  lay_out(&d);
  double high = 2 * MARGIN + (double)d.n_layers * (BOX_HIGH + GAP_HIGH) - GAP_HIGH;
  str_addf(s,
           "<svg width=\"%.0f\" height=\"%.0f\" role=\"img\" "
           "aria-label=\"steps and what they read of each other\">\n<g class=\"edges\">",
           d.wide, d.n ? high : 0);
  for (size_t i = 0; i < d.n; i++)
    for (size_t k = 0; k < x->steps.at[i].reads.n; k++)
      add_edge(&d, s, x->steps.at[i].reads.at[k], i);
  str_add(s, "</g>\n");
  for (size_t i = 0; i < d.n; i++) add_box(&d, s, &p->steps.at[i], i);
  str_add(s, "</svg>\n");
}
