/* Draws the steps of a plan as a layered graph in SVG (after Sugiyama, Tagawa and Toda, 1981). A
   step lies in the first layer below all steps that it reads. An edge over several layers gets a
   dummy vertex in each layer between. In each layer vertices are sorted by the mean position of
   their sources (barycentre heuristic). */
#include "cli/report/svg_step_graph.h"

#include "cli/core/text_format.h"
#include "cli/report/html_escape.h"

#include <stdlib.h>

enum {
  BOX_WIDE = 220,
  BOX_HIGH = 44,
  DUMMY_WIDE = 6,
  GAP_WIDE = 18,
  GAP_HIGH = 36,
  MARGIN = 10,
  NAME_SHOWN = 24,       /* characters */
  MOST_VERTICES = 200000 /* beyond which edges have no dummy vertices: lines go straight */
};

/** A step (number < n), or a dummy vertex of step number - n. */
typedef struct vertex {
  size_t number, layer;
  double wide, left; /* in pixels */
  double barycentre; /* mean middle of its sources */
} vertex;

typedef VEC(vertex *) vertices;

typedef struct drawing {
  arena *arena;
  const explained_plan *x;
  vertex **at;      /* of each step */
  vertex **dummies; /* of each step, in the layers below it, one after another; NULL: none */
  size_t n, n_vertices, n_layers;
  vertices *layers;
  double wide;
} drawing;

static double middle(const vertex *s) { return s->left + s->wide / 2; }
static double top(const vertex *s) { return MARGIN + (double)s->layer * (BOX_HIGH + GAP_HIGH); }

/** The vertex of a step's edges in a layer: the step's own, or a dummy below it. */
static const vertex *vertex_in_layer(const drawing *d, size_t step, size_t layer) {
  const vertex *s = d->at[step];
  return layer == s->layer || !d->dummies[step] ? s : &d->dummies[step][layer - s->layer - 1];
}

static vertex *new_vertices(drawing *d, size_t n) {
  d->n_vertices += n;
  return arena_calloc(d->arena, n, sizeof(vertex));
}

static void find_layers(drawing *d, size_t last_read[]) {
  for (size_t i = 0; i < d->n; i++) {
    const tn_explained_step *s = &d->x->steps.at[i];
    vertex *to = d->at[i] = new_vertices(d, 1);
    *to = (vertex){.number = i, .wide = BOX_WIDE};
    for (size_t k = 0; k < s->n_reads; k++)
      if (s->reads[k] < i && d->at[s->reads[k]]->layer >= to->layer)
        to->layer = d->at[s->reads[k]]->layer + 1;
    for (size_t k = 0; k < s->n_reads; k++)
      if (last_read[s->reads[k]] < to->layer) last_read[s->reads[k]] = to->layer;
    if (to->layer >= d->n_layers) d->n_layers = to->layer + 1;
  }
}

static void add_to_layer(drawing *d, vertex *s) { vec_push(d->arena, &d->layers[s->layer], s); }

static void fill_layers(drawing *d, const size_t last_read[]) {
  for (size_t i = 0; i < d->n; i++) {
    size_t first = d->at[i]->layer + 1, n = last_read[i] > first ? last_read[i] - first : 0;
    add_to_layer(d, d->at[i]);
    if (!n || d->n_vertices + n > MOST_VERTICES) continue;
    d->dummies[i] = new_vertices(d, n);
    for (size_t k = 0; k < n; k++) {
      d->dummies[i][k] = (vertex){.number = d->n + i, .layer = first + k, .wide = DUMMY_WIDE};
      add_to_layer(d, &d->dummies[i][k]);
    }
  }
}

static double barycentre_of(const drawing *d, const vertex *s) {
  if (s->number >= d->n) return middle(vertex_in_layer(d, s->number - d->n, s->layer - 1));
  const tn_explained_step *step = &d->x->steps.at[s->number];
  double sum = 0;
  if (!s->layer) return 0;
  for (size_t k = 0; k < step->n_reads; k++)
    sum += middle(vertex_in_layer(d, step->reads[k], s->layer - 1));
  return sum / (double)step->n_reads;
}

static int by_barycentre(const void *a, const void *b) {
  const vertex *x = *(vertex *const *)a, *y = *(vertex *const *)b;
  if (x->barycentre != y->barycentre) return x->barycentre < y->barycentre ? -1 : 1;
  return (x->number > y->number) - (x->number < y->number);
}

static void place_layer(drawing *d, vertices *layer) {
  double left = MARGIN;
  for (size_t i = 0; i < layer->n; i++) layer->at[i]->barycentre = barycentre_of(d, layer->at[i]);
  qsort(layer->at, layer->n, sizeof *layer->at, by_barycentre);
  for (size_t i = 0; i < layer->n; i++) {
    vertex *s = layer->at[i];
    s->left = s->barycentre - s->wide / 2 > left ? s->barycentre - s->wide / 2 : left;
    left = s->left + s->wide + GAP_WIDE;
  }
  if (left > d->wide) d->wide = left;
}

static void lay_out(drawing *d) {
  size_t *last_read = arena_calloc(d->arena, d->n + 1, sizeof *last_read);
  d->at = arena_calloc(d->arena, d->n + 1, sizeof *d->at);
  d->dummies = arena_calloc(d->arena, d->n + 1, sizeof *d->dummies);
  find_layers(d, last_read);
  d->layers = arena_calloc(d->arena, d->n_layers + 1, sizeof *d->layers);
  fill_layers(d, last_read);
  for (size_t i = 0; i < d->n_layers; i++) place_layer(d, &d->layers[i]);
}

/** From below one step to above another. */
static void add_edge(drawing *d, str *s, size_t from, size_t to) {
  const vertex *a = d->at[from], *b = d->at[to];
  size_t first = d->dummies[from] ? a->layer + 1 : b->layer;
  double x = middle(a), y = top(a) + BOX_HIGH;
  str_addf(s, "<path d=\"M%.0f %.0f", x, y);
  for (size_t layer = first; layer <= b->layer; layer++) {
    const vertex *next = layer < b->layer ? vertex_in_layer(d, from, layer) : b;
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
  const char *safe = text_escape(a, name);
  size_t n = 0, bytes = 0;
  for (; safe[bytes] && n <= NAME_SHOWN; bytes++) n += (safe[bytes] & 0xc0) != 0x80;
  if (n <= NAME_SHOWN) return safe;
  return arena_printf(a, "%.*s…", (int)(bytes - 1), safe);
}

static void add_box(drawing *d, str *s, const profile_step *p, size_t i) {
  double x = d->at[i]->left, y = top(d->at[i]);
  const char *kind = d->x->steps.at[i].is_output ? " class=\"output\"" : "";
  str_addf(s, "<a href=\"#step-%zu\"><title>", i + 1);
  html_escape(s, p->facts.name);
  str_addf(s,
           "</title><rect x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\" rx=\"6\"%s/>"
           "<rect class=\"heat\" x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\" rx=\"6\" "
           "style=\"opacity:%.2f\"/><text x=\"%.0f\" y=\"%.0f\">",
           x, y, BOX_WIDE, BOX_HIGH, kind, x, y, BOX_WIDE, BOX_HIGH, 0.7 * p->share, x + 10,
           y + 18);
  html_escape(s, shortened(d->arena, p->facts.name));
  str_addf(s, "</text><text class=\"small\" x=\"%.0f\" y=\"%.0f\">%zu · %s · %.1f %%</text></a>",
           x + 10, y + 35, i + 1, text_time(s->arena, p->ms), 100 * p->share);
}

void svg_step_graph_add(str *s, const profile *p, const explained_plan *x) {
  drawing d = {.arena = s->arena, .x = x, .n = x->steps.n};
  lay_out(&d);
  double high = 2 * MARGIN + (double)d.n_layers * (BOX_HIGH + GAP_HIGH) - GAP_HIGH;
  str_addf(s,
           "<svg width=\"%.0f\" height=\"%.0f\" role=\"img\" "
           "aria-label=\"steps and what they read of each other\">\n<g class=\"edges\">",
           d.wide, d.n ? high : 0);
  for (size_t i = 0; i < d.n; i++)
    for (size_t k = 0; k < x->steps.at[i].n_reads; k++) add_edge(&d, s, x->steps.at[i].reads[k], i);
  str_add(s, "</g>\n");
  for (size_t i = 0; i < d.n; i++) add_box(&d, s, &p->steps.at[i], i);
  str_add(s, "</svg>\n");
}
