/* Implements arrays with strides. A walk adds strides along the last axis, and carries over to the
   axes before it as an odometer does. */
#include "ir/interp/strided.h"

#include <string.h>

strided strided_dense(dtype t, size_t rank, const int64_t dims[], void *data) {
  strided a = {.dtype = t, .rank = rank, .data = data};
  int64_t stride = 1;
  bool is_empty = false;
  for (size_t i = 0; i < rank; i++) is_empty |= !(a.dims[i] = dims[i]);
  for (size_t i = rank; !is_empty && i-- > 0; stride *= dims[i]) a.strides[i] = stride;
  return a;
}

size_t strided_count(const strided *a) {
  size_t count = 1;
  for (size_t i = 0; i < a->rank; i++)
    if (!a->dims[i]) return 0;
  for (size_t i = 0; i < a->rank; i++) count *= (size_t)a->dims[i];
  return count;
}

size_t strided_bytes(const strided *a) { return strided_count(a) * dtype_bytes(a->dtype); }

bool strided_is_dense(const strided *a) {
  int64_t stride = 1;
  if (!strided_count(a)) return true;
  for (size_t i = a->rank; i-- > 0; stride *= a->dims[i])
    if (a->dims[i] != 1 && a->strides[i] != stride) return false;
  return true;
}

bool strided_same_dims(const strided *a, const strided *b) {
  return a->rank == b->rank && !memcmp(a->dims, b->dims, a->rank * sizeof *a->dims);
}

bool strided_is_inside(const strided *a, const int64_t at[]) {
  for (size_t i = 0; i < a->rank; i++)
    if (at[i] < 0 || at[i] >= a->dims[i]) return false;
  return true;
}

int64_t strided_place(const strided *a, const int64_t at[]) {
  int64_t place = 0;
  for (size_t i = 0; i < a->rank; i++) place += at[i] * a->strides[i];
  return place;
}

uint64_t strided_read(const strided *a, int64_t place) {
  return scalar_load(a->dtype, a->data + place * (int64_t)dtype_bytes(a->dtype));
}

void strided_write(const strided *a, int64_t place, uint64_t bits) {
  scalar_store(a->dtype, a->data + place * (int64_t)dtype_bytes(a->dtype), bits);
}

void strided_store(const strided *to, const strided *from) {
  size_t count = strided_count(from), bytes = dtype_bytes(from->dtype);
  int64_t places[2][STRIDED_ROW];
  char row[STRIDED_ROW * sizeof(uint64_t)];
  walk x = walk_over(from->rank, from->dims, from->strides);
  walk y = walk_over(to->rank, to->dims, to->strides);
  if (count && walk_is_dense(&x) && walk_is_dense(&y)) {
    memcpy(to->data, from->data, count * bytes);
    return;
  }
  for (size_t k = 0, n; k < count; k += n) {
    n = strided_row_length(count, k);
    walk_next(&x, places[0], n);
    walk_next(&y, places[1], n);
    row_gather(from->data, bytes, places[0], n, row);
    row_scatter(to->data, bytes, places[1], n, row);
  }
}

void strided_copy(const strided *a, void *to) {
  strided y = strided_dense(a->dtype, a->rank, a->dims, to);
  strided_store(&y, a);
}

void strided_fill(const strided *a, uint64_t bits) {
  size_t count = strided_count(a);
  int64_t places[STRIDED_ROW];
  walk w = walk_over(a->rank, a->dims, a->strides);
  for (size_t k = 0, n; k < count; k += n) {
    n = strided_row_length(count, k);
    walk_next(&w, places, n);
    for (size_t i = 0; i < n; i++) strided_write(a, places[i], bits);
  }
}

/** Carves the new axes, the last one first, out of the merged axes of a walk over the old ones. */
bool strided_reshape(const strided *a, size_t rank, const int64_t dims[], int64_t strides[]) {
  walk w = walk_over(a->rank, a->dims, a->strides);
  int64_t left = 1, stride = 0;
  memset(strides, 0, rank * sizeof *strides);
  if (!strided_count(a)) return true;
  for (size_t i = rank; i-- > 0;) {
    if (dims[i] == 1) continue;
    if (left == 1) {
      left = w.dims[--w.rank];
      stride = w.strides[w.rank];
    }
    if (left % dims[i]) return false;
    strides[i] = stride;
    stride *= dims[i];
    left /= dims[i];
  }
  return true;
}

walk walk_over(size_t rank, const int64_t dims[], const int64_t strides[]) {
  walk w = {.rank = 0};
  for (size_t i = 0; i < rank; i++) {
    if (dims[i] == 1) continue;
    if (w.rank && w.strides[w.rank - 1] == strides[i] * dims[i]) {
      w.dims[w.rank - 1] *= dims[i];
      w.strides[w.rank - 1] = strides[i];
      continue;
    }
    w.dims[w.rank] = dims[i];
    w.strides[w.rank++] = strides[i];
  }
  if (!w.rank) {
    w.rank = 1;
    w.dims[0] = w.strides[0] = 1;
  }
  return w;
}

/** Goes on at the end of a line along the last axis. */
static void carry(walk *w) {
  for (size_t i = w->rank; i-- > 0 && w->at[i] == w->dims[i];) {
    w->place -= w->strides[i] * w->dims[i];
    w->at[i] = 0;
    if (!i) return;
    w->at[i - 1]++;
    w->place += w->strides[i - 1];
  }
}

void walk_next(walk *w, int64_t places[], size_t n) {
  size_t last = w->rank - 1;
  int64_t stride = w->strides[last];
  for (size_t done = 0; done < n;) {
    size_t line = (size_t)(w->dims[last] - w->at[last]);
    if (line > n - done) line = n - done;
    for (size_t i = 0; i < line; i++) places[done + i] = w->place + (int64_t)i * stride;
    done += line;
    w->place += (int64_t)line * stride;
    w->at[last] += (int64_t)line;
    carry(w);
  }
}

/** Copies elements of a constant size, by moves of registers. */
#define COPY_EACH(bytes, to, from) \
  for (int64_t i = 0; i < (int64_t)n; i++) memcpy(y + (to) * (bytes), x + (from) * (bytes), bytes)

void row_gather(const void *data, size_t element_bytes, const int64_t places[], size_t n,
                void *row) {
  const char *x = data;
  char *restrict y = row;
  switch (element_bytes) {
  case 1: COPY_EACH(1, i, places[i]); return;
  case 2: COPY_EACH(2, i, places[i]); return;
  case 4: COPY_EACH(4, i, places[i]); return;
  default: COPY_EACH(8, i, places[i]); return;
  }
}

void row_scatter(void *data, size_t element_bytes, const int64_t places[], size_t n,
                 const void *row) {
  const char *x = row;
  char *restrict y = data;
  switch (element_bytes) {
  case 1: COPY_EACH(1, places[i], i); return;
  case 2: COPY_EACH(2, places[i], i); return;
  case 4: COPY_EACH(4, places[i], i); return;
  default: COPY_EACH(8, places[i], i); return;
  }
}

row_reader row_reader_of(arena *work, const strided *a) {
  row_reader r = {.a = a, .walk = walk_over(a->rank, a->dims, a->strides)};
  r.places = arena_alloc(work, STRIDED_ROW * sizeof *r.places);
  r.row = arena_alloc(work, STRIDED_ROW * sizeof(uint64_t));
  return r;
}

const char *row_reader_next(row_reader *r, size_t n) {
  size_t bytes = dtype_bytes(r->a->dtype);
  walk_next(&r->walk, r->places, n);
  if (walk_is_dense(&r->walk)) return r->a->data + r->places[0] * (int64_t)bytes;
  row_gather(r->a->data, bytes, r->places, n, r->row);
  return r->row;
}
