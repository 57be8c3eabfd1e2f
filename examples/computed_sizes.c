/* Computes with sizes that follow from data: where readings are high, and the sums of readings from
   the first high one on, until one is beyond a limit. Reads these results, whose sizes nobody knows
   before, at once and from the runs of a plan. */
#include <stdio.h>
#include <stdlib.h>
#include <tenon/tenon.h>

enum { DAYS = 3, READINGS = 8 };
static const float readings[DAYS][READINGS] = {
    {1, 0, 5, 2, 0, 7, 3, 6}, {0, 1, 1, 3, 2, 0, 1, 2}, {9, 8, 7, 0, 1, 0, 2, 1}};

/** One step of the sum: adds the reading, and tells the sum and whether it is great enough. */
static void add_reading(void *user, tn_tensor *index, tn_tensor *const state[],
                        tn_tensor *const x[], tn_tensor *next[], tn_tensor *y[]) {
  (void)index;
  y[0] = next[0] = tn_add(state[0], x[0]);
  next[1] = tn_gt(next[0], tn_num(user, 12));
}

/** The sums of readings up to the first beyond 12: as many as steps ran. */
static tn_tensor *sums_of(tn_context *tn, tn_tensor *x) {
  tn_tensor *init[] = {tn_zeros(tn, TN_SCALAR, TN_F32), tn_zeros(tn, TN_SCALAR, TN_BOOL)}, *out[3];
  tn_scan_desc loop = TN_SCAN_DESC_INIT;
  loop.body = add_reading;
  loop.user = tn;
  loop.until = 1; /* the number of the state that ends the loop */
  tn_scan(tn, &loop, init, 2, &x, 1, out, 1);
  return out[2];
}

/** Operands of the branches. */
typedef struct found {
  tn_context *tn;
  tn_tensor *x, *places;
} found;

/** The sums from the first place on: tn_dim_item makes a bound of a slice of an element. */
static void some_found(void *user, tn_tensor *out[]) {
  const found *f = user;
  tn_dim first = tn_dim_item(tn_min(f->places, TN_ALL, false), 0, READINGS);
  out[0] = sums_of(f->tn, tn_slice(f->x, 0, first, READINGS, 1));
}

static void none_found(void *user, tn_tensor *out[]) {
  const found *f = user;
  out[0] = tn_zeros(f->tn, tn_shape(0), TN_F32);
}

/** Two vectors: the places of readings above 4, and the sums from the first of them on, if any. */
static void find(tn_context *tn, tn_tensor *x, tn_tensor *out[2]) {
  tn_tensor *is_high = tn_gt(x, tn_num(tn, 4));
  found f = {tn, x, tn_flatten(tn_nonzero(is_high), 0, -1)};
  tn_cond_desc branches = TN_COND_DESC_INIT;
  branches.then_body = some_found;
  branches.else_body = none_found;
  branches.user = &f;
  out[0] = f.places;
  tn_cond(tn, tn_any(is_high, TN_ALL, false), &branches, &out[1], 1);
}

static void print(const char *name, const float *values, int64_t n) {
  printf("%s:", name);
  for (int64_t i = 0; i < n; i++) printf(" %g", values[i]);
  putchar('\n');
}

/** Reads a vector at once: tn_dim_value tells how many elements there are. */
static tn_status print_now(tn_context *tn, const char *name, tn_tensor *y) {
  int64_t n = 0;
  tn_status s = tn_dim_value(tn, tn_type_of(y).shape.size[0], &n);
  float *values = malloc((size_t)n * sizeof *values + 1);
  if (!values) s = TN_ERR_MEMORY;
  if (s == TN_OK) s = tn_read(y, TN_F32, values, (size_t)n * sizeof *values);
  if (s == TN_OK) print(name, values, n);
  free(values);
  return s;
}

/** Reads a vector from the last run of a plan: tn_binding_type tells the size that it had there. */
static tn_status print_of_run(tn_binding *run, const char *name) {
  int64_t n = tn_binding_type(run, name).shape.size[0];
  float *values = malloc((size_t)n * sizeof *values + 1);
  tn_status s = values ? TN_OK : TN_ERR_MEMORY;
  if (s == TN_OK) s = tn_binding_read(run, name, TN_F32, values, (size_t)n * sizeof *values);
  if (s == TN_OK) print(name, values, n);
  free(values);
  return s;
}

/** Finds in the readings of the first day now, and in those of all days by a plan. */
static tn_status find_in_days(tn_context *tn) {
  tn_tensor *now[2], *later[2];
  tn_plan_desc desc = TN_PLAN_DESC_INIT;
  tn_plan *plan = NULL;
  tn_binding *run = NULL;
  find(tn, tn_from_host(tn, tn_shape(READINGS), TN_F32, readings[0], sizeof readings[0]), now);
  tn_status s = print_now(tn, "places", now[0]);
  if (s == TN_OK) s = print_now(tn, "sums", now[1]);
  find(tn, tn_input(tn, "x", tn_shape(READINGS), TN_F32), later);
  desc.outputs = (const char *const[]){"places", "sums"};
  if (s == TN_OK) s = tn_plan_compile(tn, later, 2, &desc, &plan);
  if (s == TN_OK) s = tn_plan_bind(plan, &run);
  for (int day = 0; day < DAYS && s == TN_OK; day++) {
    printf("day %d, ", day + 1);
    tn_binding_input(run, "x", tn_shape(READINGS), TN_F32, readings[day], sizeof readings[day]);
    s = tn_binding_run(run);
    if (s == TN_OK) s = print_of_run(run, "places");
    if (s == TN_OK) s = print_of_run(run, "sums");
    if (s != TN_OK) fprintf(stderr, "%s\n", tn_binding_message(run));
  }
  return s;
}

int main(void) {
  tn_context *tn = tn_open(NULL);
  tn_status s = find_in_days(tn);
  if (s != TN_OK) fprintf(stderr, "%s\n", tn_message(tn));
  tn_close(tn);
  return s != TN_OK;
}
