/* Writes the HTML page of `tenon explain`: a table of steps, the drawing of the graph, and a
   section for each step. Style and script are in the page itself. */
#include "cli/report/html_page.h"

#include "cli/core/text_format.h"
#include "cli/report/html_escape.h"
#include "cli/report/svg_step_graph.h"

#include <string.h>

static const char style[] =
    ":root{color-scheme:light dark;--fg:#1b1f24;--bg:#fff;--soft:#f3f5f7;--line:#d0d7de;"
    "--dim:#59636e;--heat:#d9480f;--link:#0b62c4}\n"
    "@media(prefers-color-scheme:dark){:root{--fg:#e2e6ea;--bg:#14171a;--soft:#1d2126;"
    "--line:#3a424b;--dim:#98a2ad;--heat:#ff7a3d;--link:#6cb2ff}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0 auto;padding:1rem;max-width:75rem;font:15px/1.5 system-ui,sans-serif;"
    "color:var(--fg);background:var(--bg)}\n"
    "h1{font-size:1.4rem;overflow-wrap:anywhere;margin:.5rem 0}\n"
    "h2{font-size:1.1rem;margin:2rem 0 .5rem}\n"
    "h3{font-size:.95rem;margin:1rem 0 .3rem;color:var(--dim)}\n"
    "a{color:var(--link);text-decoration:none}\n"
    ".facts{color:var(--dim);margin:0}\n"
    ".wide{overflow-x:auto;border:1px solid var(--line);border-radius:6px}\n"
    "table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}\n"
    "th,td{padding:.3rem .6rem;text-align:right;white-space:nowrap;"
    "border-top:1px solid var(--line)}\n"
    "thead th{border:0;color:var(--dim);font-weight:500;background:var(--soft)}\n"
    ".name{text-align:left;white-space:normal;overflow-wrap:anywhere;min-width:12rem}\n"
    ".bar{min-width:7rem;padding-left:0}\n"
    ".bar i{display:block;height:.7rem;min-width:1px;border-radius:2px;background:var(--heat)}\n"
    "details{border:1px solid var(--line);border-radius:6px;margin:.5rem 0;padding:0 .8rem}\n"
    "details:target{border-color:var(--link)}\n"
    "summary{cursor:pointer;padding:.5rem 0;overflow-wrap:anywhere}\n"
    "pre{overflow-x:auto;background:var(--soft);border-radius:6px;padding:.6rem;margin:.3rem 0 "
    ".8rem;font:12px/1.45 ui-monospace,monospace}\n"
    "dl{margin:0 0 .8rem}dt{font:13px/1.5 ui-monospace,monospace;overflow-wrap:anywhere}\n"
    "dd{margin:0 0 .3rem 1.2rem;color:var(--dim);overflow-wrap:anywhere}\n"
    "svg{display:block;margin:0 auto;font:13px system-ui,sans-serif}\n"
    "svg rect{fill:var(--soft);stroke:var(--line)}svg .output{stroke:var(--fg)}\n"
    "svg .heat{fill:var(--heat);stroke:none}svg text{fill:var(--fg)}\n"
    "svg .small{font-size:11px}.edges path{fill:none;stroke:var(--dim)}\n";

static void add_head(str *s, const profile *p, const graph_lines *graphs, const char *sizes,
                     const char *exact) {
  const tn_context_info *used = &p->used;
  arena *a = s->arena;
  str_add(s, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
             "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>");
  html_escape(s, p->c->operand);
  str_addf(s, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<h1>", style);
  html_escape(s, p->c->operand);
  str_add(s, "</h1>\n<p class=\"facts\">");
  html_escape(s, used->device);
  str_add(s, ", ");
  html_escape(s, used->target);
  if (!p->no_peak) str_addf(s, ", %s", text_count(a, (uint64_t)used->threads, "thread"));
  str_addf(s, ". Steps take %s of a run's %s; ", text_time(a, p->steps_ms), text_time(a, p->ms));
  if (p->no_peak) {
    str_add(s, "the peaks are unknown: ");
    html_escape(s, p->no_peak);
    str_add(s, ".");
  } else {
    str_addf(s, "measured peaks: %s GFLOP/s and %s GB/s.", text_rate(a, p->peak_gflops),
             text_rate(a, p->peak_gbps));
  }
  for (size_t i = 0; i < graphs->lines.n; i++) {
    str_add(s, " ");
    html_escape(s, graphs->lines.at[i]);
    str_add(s, ".");
  }
  if (*sizes) {
    str_add(s, " Sizes that vary: ");
    html_escape(s, sizes);
    str_add(s, ".");
  }
  if (exact) {
    str_add(s, " Note: ");
    html_escape(s, exact);
    str_add(s, ".");
  }
  str_add(s, "</p>\n");
}

static void add_row(str *s, const profile *p, size_t i) {
  const profile_step *step = &p->steps.at[i];
  double operations = step->facts.operations, bytes = step->facts.bytes;
  arena *a = s->arena;
  str_addf(s, "<tr><td><a href=\"#step-%zu\">%zu</a><td class=\"name\">", i + 1, i + 1);
  html_escape(s, step->facts.name);
  str_addf(s, "<td>%s", text_time(a, step->ms));
  str_addf(s, "<td class=\"bar\"><i style=\"width:%.1f%%\"></i>", 100 * step->share);
  str_addf(s, "<td>%.1f %%", 100 * step->share);
  str_addf(s, "<td>%s<td>%s", operations > 0 ? text_si_number(a, operations) : "-",
           bytes > 0 ? text_bytes(a, (uint64_t)bytes) : "-");
  str_addf(s, "<td>%s<td>%s<td>%s</tr>\n", text_rate(a, step->gflops), text_rate(a, step->gbps),
           profile_peak_text(a, step));
}

static void add_table(str *s, const profile *p) {
  str_add(s, "<h2>Steps</h2>\n<div class=\"wide\"><table>\n<thead><tr><th>step<th class=\"name\">"
             "computes<th>time<th><th>share<th>operations<th>bytes<th>GFLOP/s<th>GB/s<th>of "
             "peak</tr></thead>\n<tbody>\n");
  for (size_t i = 0; i < p->steps.n; i++) add_row(s, p, i);
  str_add(s, "</tbody></table></div>\n");
}

static void add_lines(str *s, const char *title, const char *const lines[], size_t n) {
  if (!n) return;
  str_addf(s, "<h3>%s</h3>\n<pre>", title);
  for (size_t i = 0; i < n; i++) {
    html_escape(s, lines[i]);
    str_add(s, "\n");
  }
  str_add(s, "</pre>\n");
}

static void add_values(str *s, const tn_explained_step *step) {
  if (!step->n_values) return;
  str_add(s, "<h3>Values and decisions</h3>\n<dl>\n");
  for (size_t i = 0; i < step->n_values; i++) {
    str_add(s, "<dt>");
    html_escape(s, step->values[i].text);
    str_add(s, "<dd>");
    html_escape(s, step->values[i].why);
    str_add(s, "\n");
  }
  str_add(s, "</dl>\n");
}

static void add_reads(str *s, const tn_explained_step *step) {
  if (!step->n_reads) return;
  str_add(s, "<p>Reads the results of");
  for (size_t i = 0; i < step->n_reads; i++)
    str_addf(s, "%s <a href=\"#step-%zu\">step %zu</a>", i ? "," : "", step->reads[i] + 1,
             step->reads[i] + 1);
  str_add(s, ".</p>\n");
}

static void add_places(str *s, const tn_explained_step *step) {
  if (step->n_places)
    str_addf(s, "<p>Writes %zu piece%s of larger arrays.</p>\n", step->n_places,
             step->n_places > 1 ? "s" : "");
  if (step->is_guarded) str_add(s, "<p>Skipped in runs that take another branch.</p>\n");
  if (step->n_copies)
    str_addf(s, "<p>Copies %zu piece%s of larger arrays.</p>\n", step->n_copies,
             step->n_copies > 1 ? "s" : "");
}

/** Adds the kernel of a step, or a link to the first step that runs the same kernel. */
static void add_kernel(str *s, const explained_plan *x, size_t i) {
  int64_t kernel = x->steps.at[i].kernel;
  size_t first = 0;
  if (kernel < 0) {
    str_addf(s, "<p>No kernel: %s.</p>\n", x->steps.at[i].what);
    return;
  }
  while (x->steps.at[first].kernel != kernel) first++;
  if (first < i) {
    str_addf(s, "<p>Runs the same kernel as <a href=\"#step-%zu\">step %zu</a>.</p>\n", first + 1,
             first + 1);
    return;
  }
  const tn_explained_kernel *k = &x->kernels.at[kernel];
  add_lines(s, "Loops", k->loops, k->n_loops);
  if (k->library) add_lines(s, "Computed by the library", &k->library, 1);
  add_lines(s, k->tuned ? "Schedule, found by measuring" : "Schedule", k->schedule, k->n_schedule);
  if (k->predicted.total > 0)
    str_addf(s, "<p>Predicted on one thread: %s (%s).</p>\n",
             text_time(s->arena, k->predicted.total * 1e-6),
             predicted_parts(s->arena, &k->predicted));
  str_add(s, "<details><summary>Source</summary><pre>");
  html_escape(s, k->source);
  str_add(s, "</pre></details>\n");
}

static void add_step(str *s, const profile *p, const explained_plan *x, size_t i) {
  const profile_step *step = &p->steps.at[i];
  str_addf(s, "<details id=\"step-%zu\"><summary><b>%zu</b> ", i + 1, i + 1);
  html_escape(s, step->facts.name);
  str_addf(s, " <span class=\"facts\">%s</span></summary>\n", text_time(s->arena, step->ms));
  add_reads(s, &x->steps.at[i]);
  add_places(s, &x->steps.at[i]);
  add_values(s, &x->steps.at[i]);
  add_kernel(s, x, i);
  str_add(s, "</details>\n");
}

/* Opens the folded section to which a link leads. */
static const char script[] =
    "<script>\nfunction show(){const d=document.getElementById(location.hash.slice(1));"
    "if(d){d.open=true;d.scrollIntoView()}}\n"
    "addEventListener('hashchange',show);show();\n</script>\n";

str html_page_make(const profile *p, const explained_plan *x, const graph_lines *graphs,
                   const char *sizes, const char *exact) {
  str s = str_new(&p->c->arena);
  add_head(&s, p, graphs, sizes, exact);
  add_table(&s, p);
  str_add(&s, "<h2>Graph</h2>\n<div class=\"wide\">");
  svg_step_graph_add(&s, p, x);
  str_add(&s, "</div>\n<h2>Kernels</h2>\n");
  for (size_t i = 0; i < x->steps.n; i++) add_step(&s, p, x, i);
  str_addf(&s, "%s</body>\n</html>\n", script);
  return s;
}
