#include "cli/drawing.h"

#include "cli/page.h"
#include "cli/text.h"

#include <string.h>

/* Steps lie in layers: each in the first one below all that it reads. In its layer a step lies
   about where what it reads does. */

enum { BOX_WIDE = 220, BOX_HIGH = 44, GAP_WIDE = 24, GAP_HIGH = 34, MARGIN = 40, SHOWN = 24 };

typedef struct box {
  size_t layer, column;
  double wish; /* the column where it would like to be */
} box;

typedef struct drawing {
  arena *arena;
  const explanation *x;
  box *boxes;
  size_t n, layers, columns;
} drawing;

static void set_layer(drawing *d, size_t i) {
  const explained_step *s = &d->x->steps.at[i];
  box *b = &d->boxes[i];
  for (size_t k = 0; k < s->reads.n; k++)
    if (d->boxes[s->reads.at[k]].layer >= b->layer) b->layer = d->boxes[s->reads.at[k]].layer + 1;
  if (b->layer >= d->layers) d->layers = b->layer + 1;
}

static void set_wish(drawing *d, size_t i) {
  const explained_step *s = &d->x->steps.at[i];
  double sum = 0;
  for (size_t k = 0; k < s->reads.n; k++) sum += (double)d->boxes[s->reads.at[k]].column;
  d->boxes[i].wish = s->reads.n ? sum / (double)s->reads.n : 0;
}

typedef VEC(size_t) numbers;

/** Steps of a layer, by where they would like to be; as they run where that is one place. */
static void insert(drawing *d, numbers *layer, size_t i) {
  vec_push(d->arena, layer, i);
  size_t k = layer->n - 1;
  for (; k > 0 && d->boxes[layer->at[k - 1]].wish > d->boxes[i].wish; k--)
    layer->at[k] = layer->at[k - 1];
  layer->at[k] = i;
}

static void lay_out(drawing *d) {
  for (size_t i = 0; i < d->n; i++) set_layer(d, i);
  numbers *layers = arena_calloc(d->arena, d->layers + 1, sizeof *layers);
  for (size_t i = 0; i < d->n; i++) vec_push(d->arena, &layers[d->boxes[i].layer], i);
  for (size_t l = 0; l < d->layers; l++) {
    numbers sorted = {0};
    for (size_t k = 0; k < layers[l].n; k++) set_wish(d, layers[l].at[k]);
    for (size_t k = 0; k < layers[l].n; k++) insert(d, &sorted, layers[l].at[k]);
    for (size_t k = 0; k < sorted.n; k++) d->boxes[sorted.at[k]].column = k;
    if (sorted.n > d->columns) d->columns = sorted.n;
  }
}

static size_t left_of(const box *b) { return MARGIN + b->column * (BOX_WIDE + GAP_WIDE); }
static size_t top_of(const box *b) { return MARGIN / 4 + b->layer * (BOX_HIGH + GAP_HIGH); }

/** From below one step to above another; past other layers in an arc at the side. */
static void add_edge(drawing *d, str *s, size_t from, size_t to) {
  const box *a = &d->boxes[from], *b = &d->boxes[to];
  size_t x1 = left_of(a) + BOX_WIDE / 2, y1 = top_of(a) + BOX_HIGH, x2 = left_of(b) + BOX_WIDE / 2,
         y2 = top_of(b);
  if (b->layer == a->layer + 1) {
    str_addf(s, "<path d=\"M%zu %zuC%zu %zu %zu %zu %zu %zu\"/>", x1, y1, x1, y1 + GAP_HIGH / 2, x2,
             y2 - GAP_HIGH / 2, x2, y2);
    return;
  }
  size_t right = (x1 > x2 ? x1 : x2) + BOX_WIDE / 2 + GAP_WIDE;
  str_addf(s, "<path d=\"M%zu %zuC%zu %zu %zu %zu %zu %zu\"/>", x1 + BOX_WIDE / 2,
           y1 - BOX_HIGH / 2, right, y1, right, y2, x2 + BOX_WIDE / 2, y2 + BOX_HIGH / 2);
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
  const box *b = &d->boxes[i];
  size_t x = left_of(b), y = top_of(b);
  bool is_output = d->x->steps.at[i].is_output;
  str_addf(s, "<a href=\"#step-%zu\"><title>", i + 1);
  page_text(s, p->facts.name);
  str_addf(s,
           "</title><rect x=\"%zu\" y=\"%zu\" width=\"%d\" height=\"%d\" rx=\"6\"%s/>"
           "<rect class=\"heat\" x=\"%zu\" y=\"%zu\" width=\"%d\" height=\"%d\" rx=\"6\" "
           "style=\"opacity:%.2f\"/><text x=\"%zu\" y=\"%zu\">",
           x, y, BOX_WIDE, BOX_HIGH, is_output ? " class=\"output\"" : "", x, y, BOX_WIDE, BOX_HIGH,
           0.7 * p->share, x + 10, y + 18);
  page_text(s, shortened(d->arena, p->facts.name));
  str_addf(s, "</text><text class=\"small\" x=\"%zu\" y=\"%zu\">%zu · %.4g ms · %.1f %%</text></a>",
           x + 10, y + 35, i + 1, p->ms, 100 * p->share);
}

void drawing_add(str *s, const profile *p, const explanation *x) {
  drawing d = {.arena = s->arena, .x = x, .n = x->steps.n};
  d.boxes = arena_calloc(d.arena, d.n + 1, sizeof *d.boxes);
  lay_out(&d);
  size_t wide = 2 * MARGIN + d.columns * (BOX_WIDE + GAP_WIDE),
         high = MARGIN / 2 + d.layers * (BOX_HIGH + GAP_HIGH) - (d.layers ? GAP_HIGH : 0);
  str_addf(s,
           "<svg width=\"%zu\" height=\"%zu\" viewBox=\"0 0 %zu %zu\" role=\"img\" "
           "aria-label=\"steps and what they read of each other\">\n<g class=\"edges\">",
           wide, high, wide, high);
  for (size_t i = 0; i < d.n; i++)
    for (size_t k = 0; k < x->steps.at[i].reads.n; k++)
      if (x->steps.at[i].reads.at[k] != i) add_edge(&d, s, x->steps.at[i].reads.at[k], i);
  str_add(s, "</g>\n");
  for (size_t i = 0; i < d.n; i++) add_box(&d, s, &p->steps.at[i], i);
  str_add(s, "</svg>\n");
}
