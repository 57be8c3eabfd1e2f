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
  NAME_SHOWN = 24,      /* characters */
  MAX_VERTICES = 200000 /* further edges have no dummy vertices and are drawn straight */
};

/** The vertex of step `number`, or a dummy vertex of step `number` − n. */
typedef struct vertex {
  size_t number, layer;
  double wide, left; /* in pixels */
  double barycentre; /* mean centre of its sources */
} vertex;

typedef VEC(vertex *) vertices;

typedef struct drawing {
  arena *arena;
  const explained_plan *x;
  vertex **steps;   /* the vertex of each step */
  vertex **dummies; /* the dummy vertices of each step, in order of layers; NULL: none */
  size_t n, n_vertices, n_layers;
  vertices *layers;
  double wide;
} drawing;

static double middle(const vertex *s) { return s->left + s->wide / 2; }
static double top(const vertex *s) { return MARGIN + (double)s->layer * (BOX_HIGH + GAP_HIGH); }

/** The vertex of a step in a layer: its own, or a dummy below it. */
static const vertex *vertex_in_layer(const drawing *d, size_t step, size_t layer) {
  const vertex *s = d->steps[step];
  return layer == s->layer || !d->dummies[step] ? s : &d->dummies[step][layer - s->layer - 1];
}

static vertex *new_vertices(drawing *d, size_t n) {
  d->n_vertices += n;
  return arena_calloc(d->arena, n, sizeof(vertex));
}

static void find_layers(drawing *d, size_t last_read[]) {
  for (size_t i = 0; i < d->n; i++) {
    const tn_explained_step *s = &d->x->steps.at[i];
    vertex *to = d->steps[i] = new_vertices(d, 1);
    *to = (vertex){.number = i, .wide = BOX_WIDE};
    for (size_t k = 0; k < s->n_reads; k++)
      if (s->reads[k] < i && d->steps[s->reads[k]]->layer >= to->layer)
        to->layer = d->steps[s->reads[k]]->layer + 1;
    for (size_t k = 0; k < s->n_reads; k++)
      if (last_read[s->reads[k]] < to->layer) last_read[s->reads[k]] = to->layer;
    if (to->layer >= d->n_layers) d->n_layers = to->layer + 1;
  }
}

static void add_to_layer(drawing *d, vertex *s) { vec_push(d->arena, &d->layers[s->layer], s); }

static void fill_layers(drawing *d, const size_t last_read[]) {
  for (size_t i = 0; i < d->n; i++) {
    size_t first = d->steps[i]->layer + 1, n = last_read[i] > first ? last_read[i] - first : 0;
    add_to_layer(d, d->steps[i]);
    if (!n || d->n_vertices + n > MAX_VERTICES) continue;
    d->dummies[i] = new_vertices(d, n);
    for (size_t k = 0; k < n; k++) {
      d->dummies[i][k] = (vertex){.number = d->n + i, .layer = first + k, .wide = DUMMY_WIDE};
      add_to_layer(d, &d->dummies[i][k]);
    }
  }
}

static double compute_barycentre(const drawing *d, const vertex *s) {
  if (s->number >= d->n) return middle(vertex_in_layer(d, s->number - d->n, s->layer - 1));
  const tn_explained_step *step = &d->x->steps.at[s->number];
  double sum = 0;
  if (!s->layer) return 0;
  for (size_t k = 0; k < step->n_reads; k++)
    sum += middle(vertex_in_layer(d, step->reads[k], s->layer - 1));
  return sum / (double)step->n_reads;
}

static int compare_barycentres(const void *a, const void *b) {
  const vertex *x = *(vertex *const *)a, *y = *(vertex *const *)b;
  if (x->barycentre != y->barycentre) return x->barycentre < y->barycentre ? -1 : 1;
  return (x->number > y->number) - (x->number < y->number);
}

static void place_layer(drawing *d, vertices *layer) {
  double left = MARGIN;
  for (size_t i = 0; i < layer->n; i++)
    layer->at[i]->barycentre = compute_barycentre(d, layer->at[i]);
  qsort(layer->at, layer->n, sizeof *layer->at, compare_barycentres);
  for (size_t i = 0; i < layer->n; i++) {
    vertex *s = layer->at[i];
    s->left = s->barycentre - s->wide / 2 > left ? s->barycentre - s->wide / 2 : left;
    left = s->left + s->wide + GAP_WIDE;
  }
  if (left > d->wide) d->wide = left;
}

static void lay_out(drawing *d) {
  size_t *last_read = arena_calloc(d->arena, d->n + 1, sizeof *last_read);
  d->steps = arena_calloc(d->arena, d->n + 1, sizeof *d->steps);
  d->dummies = arena_calloc(d->arena, d->n + 1, sizeof *d->dummies);
  find_layers(d, last_read);
  d->layers = arena_calloc(d->arena, d->n_layers + 1, sizeof *d->layers);
  fill_layers(d, last_read);
  for (size_t i = 0; i < d->n_layers; i++) place_layer(d, &d->layers[i]);
}

/** Adds the edge from the bottom of one step to the top of another. */
static void add_edge(drawing *d, str *s, size_t from, size_t to) {
  const vertex *a = d->steps[from], *b = d->steps[to];
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

/** Truncates a name at a whole character. */
static const char *truncate_name(arena *a, const char *name) {
  const char *safe = text_escape(a, name);
  size_t n = 0, bytes = 0;
  for (; safe[bytes] && n <= NAME_SHOWN; bytes++) n += (safe[bytes] & 0xc0) != 0x80;
  if (n <= NAME_SHOWN) return safe;
  return arena_printf(a, "%.*s…", (int)(bytes - 1), safe);
}

static void add_box(drawing *d, str *s, const profile_step *p, size_t i) {
  double x = d->steps[i]->left, y = top(d->steps[i]);
  const char *kind = d->x->steps.at[i].is_output ? " class=\"output\"" : "";
  str_addf(s, "<a href=\"#step-%zu\"><title>", i + 1);
  html_escape(s, p->facts.name);
  str_addf(s,
           "</title><rect x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\" rx=\"6\"%s/>"
           "<rect class=\"heat\" x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\" rx=\"6\" "
           "style=\"opacity:%.2f\"/><text x=\"%.0f\" y=\"%.0f\">",
           x, y, BOX_WIDE, BOX_HIGH, kind, x, y, BOX_WIDE, BOX_HIGH, 0.7 * p->share, x + 10,
           y + 18);
  html_escape(s, truncate_name(d->arena, p->facts.name));
  str_addf(s, "</text><text class=\"small\" x=\"%.0f\" y=\"%.0f\">%zu · %s · %.1f %%</text></a>",
           x + 10, y + 35, i + 1, text_time(s->arena, p->ms), 100 * p->share);
}

void svg_step_graph_add(str *s, const profile *p, const explained_plan *x) {
  drawing d = {.arena = s->arena, .x = x, .n = x->steps.n};
  lay_out(&d);
  double high = 2 * MARGIN + (double)d.n_layers * (BOX_HIGH + GAP_HIGH) - GAP_HIGH;
  str_addf(s,
           "<svg width=\"%.0f\" height=\"%.0f\" role=\"img\" "
           "aria-label=\"steps and their dependences\">\n<g class=\"edges\">",
           d.wide, d.n ? high : 0);
  for (size_t i = 0; i < d.n; i++)
    for (size_t k = 0; k < x->steps.at[i].n_reads; k++) add_edge(&d, s, x->steps.at[i].reads[k], i);
  str_add(s, "</g>\n");
  for (size_t i = 0; i < d.n; i++) add_box(&d, s, &p->steps.at[i], i);
  str_add(s, "</svg>\n");
}
