/* Values: the units that fusion decides about. A value is a node of the normalised graph other than
   a mere movement. The element at its own coordinates is one scalar expression, the body, over
   elements INDEX(tensor; e …) of PARAMs (the graph's arrays) and of other values; movements are
   folded into the indices. The body of a reduction is the term that is reduced, over its
   coordinates and its own ranges. */
#ifndef TENON_SCHEDULE_VALUES_VALUE_H
#define TENON_SCHEDULE_VALUES_VALUE_H

#include "base/map.h"
#include "ir/core/topo_sort.h"

typedef struct ir ir;

/** An array that must hold a value: its own tensor's, or the one that a SET changes. */
typedef struct value_store {
  const node *array;         /* the tensor, or the SET */
  const node *const *coords; /* position in the array, over the value's coordinates; of updates, the
                                coordinates themselves: their body has the place of each */
  size_t rank;
} value_store;

/** A scan: a value with several states that a loop over blocks carries. All states step once a
    block, from the states before and from values of that block. Its elements are read as
    INDEX(tensor; coordinates of the value …, coordinates of the state …) {state}. */
typedef struct value_scan {
  size_t n; /* states */
  struct scan_state {
    const node *init, *step; /* step: over STATE(the value's only reduced range) {state} */
    size_t rank;             /* of its array; 0: a scalar */
    const node *const *dims;
    const node *const *coords;
  } * state;
} value_scan;

/** A value that a kernel of its own computes by a FOLD: each element of its body, in row-major
   order along some coordinates, updates a state, which lies in the array that the value is stored
   to. */
typedef struct value_updates {
  int64_t op;      /* of the updates; −1: the last one stays */
  uint64_t along;  /* mask of the coordinates that the FOLD binds */
  bool is_scan;    /* the state is an element, which each update emits; else it is an array, and the
                      body is GROUP(value; coordinate of each axis of the array …) */
  int64_t classes; /* of a scan by classes: its state is an array of as many elements, and the body
                      is GROUP(value; class); else 0 */
  bool is_distinct;   /* no two updates write one element: they may run in any order */
  const node *stored; /* of a scan: what is stored of the element `read`; NULL: the element */
  const node *read;
} value_updates;

/** Resources that a group reserves for a value that it will compute later. */
typedef struct value_reserve {
  size_t nests, ranges, arguments;
  double scratch; /* bytes */
} value_reserve;

/** The reduction of a body. */
typedef struct value_reduction {
  op op;                     /* OP_LIMIT: the value is no reduction */
  size_t n;                  /* at least 1 */
  const node *const *ranges; /* RANGEs that it is reduced over */
} value_reduction;

/** An ITEM that a value mentions. */
typedef struct value_item {
  size_t number;
  const node *element;       /* the tensor that the host reads before */
  const struct guard *under; /* where the value mentions it */
} value_item;

/** The operands of a value. */
typedef struct value_inputs {
  node_list elements; /* the INDEX nodes in the body, each once */
  node_list tensors;  /* their tensors, each once */
  node_list arrays;   /* tensors that it needs in memory as whole arrays */
  VEC(value_item) items;
} value_inputs;

/** Form in which a kernel that computes a value best holds it. */
typedef struct value_local {
  bool is_array;         /* as an array of the axes in `axes`, built for each index of the others */
  uint64_t axes;         /* mask of axes; 0: an array of one element */
  value_reserve reserve; /* resources of a scan, or of a value inside of one */
} value_local;

/** Where a value is to be, and for which reason. */
typedef enum store_wish {
  WISH_NONE,   /* where the fusion search's estimates say */
  WISH_KEPT,   /* operands of tiles of warps: in memory, whatever kernels cost (forced_stores.c) */
  WISH_FORCED, /* in memory, as estimates do not see the cost of its repetition: forced_stores.c */
  WISH_STORED, /* in memory, by the cost of kernels: grouping/choose_stores.c */
  WISH_INLINED /* computed in its readers, if that is legal, by the cost of kernels */
} store_wish;

/** Reasons to write a value to memory, apart from its cost. */
typedef struct value_memory {
  VEC(value_store) stores; /* arrays that it must be written to */
  bool is_never_inlined;   /* readers load it and never compute it */
  bool is_cut;             /* written instead of its operand (materialise.c), or forced */
  store_wish wish;
  bool was_stored; /* the search before this one wrote it by choice */
} value_memory;

typedef struct value {
  /* The tensor and the expression of its elements. */
  const node *tensor;
  size_t rank;
  const node *const *dims;
  const node *const *coords; /* a RANGE for each axis; 0 where the size is 1 */
  const node *body; /* NULL: a CUSTOM, KERNEL or RESULT, which read whole arrays, or a join or a
                       PICK, whose array consists of them */
  value_reduction reduction;
  value_inputs inputs;
  bool depends_on_coords; /* value_depends_on_coords of the body */
  /* The places where it may be computed. */
  const value_scan *scan;       /* the states of a scan; NULL: no scan */
  const value_updates *updates; /* NULL: a value that is an expression at each element */
  bool is_in_scan;              /* reads states of a scan: only computed in its loop */
  bool is_join;                 /* joins.h, or a PICK: no kernel computes it */
  value_memory memory;
  value_local local;
  const struct guard *guard; /* guarded_values.h: needed in runs in which it holds; NULL: in all */
  /* The search. */
  size_t position;                /* in `values` */
  struct value_facts *facts;      /* cost_model.h */
  struct value_placement *places; /* fusion_group.h */
  uint8_t device;                 /* on which it is computed, + 1 */
} value;

/** Where an array lies inside another one of its rank: its element at some coordinates is the other
    one's at these plus `start` along an axis. */
typedef struct array_place {
  const node *array; /* a tensor, which may have a place itself */
  size_t axis;
  const node *start;
} array_place;

typedef struct values {
  VEC(value *)
  at;     /* each after the values it reads and after all readers of the arrays it stores over */
  map of; /* tensor → value; a SET that is a store of another value is that value's */
  map overwriter; /* array (PARAM or tensor) → the value stored over it */
  map places;     /* tensor → array_place, if its array lies inside another one */
  map sides;      /* tensor → the PICK whose array it is stored to where it is taken */
  const struct guard **item_guards; /* of each ITEM: a value mentions it where that holds; NULL: in
                                       all runs */
} values;

/** True for a TO that moves elements: its operand is on another device. */
static inline bool value_is_copied_between_devices(const node *n) {
  if (n->op != OP_TO) return false;
  return n->src[0]->device ? n->src[0]->device != n->device : n->n_int > 1;
}

/** The number of first operands that a tensor's node reads as whole arrays: the inputs of CUSTOMs,
    KERNELs and loops, and the array that a SET changes. */
size_t value_whole_operands(const node *n);

typedef VEC(value *) value_list;

/** The values that read each value, by position. */
value_list *values_readers(arena *a, const values *v);

/** Tensor → the only value that reads it; NULL: several do, or one as a whole array, or it is one
   of n roots. */
map values_only_readers(arena *a, const values *v, const node *const roots[], size_t n);

/** True if an expression over values reads x as it is: a PARAM, or a tensor that is a key. */
bool value_is_leaf(const map *tensors, const node *x);

/** The elements INDEX(tensor; e …) that a body reads of PARAMs and of tensors that are keys. */
node_list value_reads_of(ir *g, const map *tensors, const node *body);

/** A value of a tensor, with a RANGE for each axis and no body; in no list yet. */
value *value_of_tensor(ir *g, const node *tensor, size_t rank, const node *const dims[]);

/** Sets the body of a value, over elements of PARAMs and of tensors that are keys; `all`: the
   values that are known. */
void value_set_body_over(ir *g, const map *tensors, const values *all, value *v, const node *body);

/** A BUFFER that nothing else is, and that is anybody's: for tensors which are not in the graph. */
const node *value_new_array(ir *g, dtype t, size_t rank, const node *const dims[]);

/** Adds a value of a type and size, with a tensor of the op `named` and no body yet. */
value *value_make(ir *g, values *v, op named, dtype t, size_t rank, const node *const dims[]);

/** Sets the body of a value, over elements of PARAMs and of values of `v`. */
void value_set_body(ir *g, const values *v, value *x, const node *body);

/** True if a value is always computed where it is read, and never in memory. */
static inline bool value_is_never_stored(const value *v) { return v->scan || v->is_in_scan; }

/** True if a value is a reduction. */
static inline bool value_is_reduction(const value *v) { return v->reduction.op != OP_LIMIT; }

/** The array in memory that holds a tensor's elements: the tensor itself, if it has no place. */
const node *values_holder(const values *v, const node *tensor);

/** Adds to coordinates in a tensor's array those of the array in its holder. */
void values_move_to_holder(ir *g, const values *v, const node *tensor, const node *coords[]);

/** The store of a value by a SET over an array; NULL: none. */
const value_store *value_store_over(const value *v, const node *array);

/** Maps the coordinates of a value to the indices of an INDEX(tensor; e …) of it: substituted into
    the body, they give that element. */
map value_coords_at(arena *a, const value *v, const node *index);

/** True if an element compares coordinates or computes with them, or reads values that do and are
    computed where they are read; `tensors`: tensor → value. */
bool value_depends_on_coords(ir *g, const map *tensors, const node *body);

/** True if v reads the element of a tensor of this rank at its own coordinates, but for axes of
   size 1. */
bool value_reads_in_place(const value *v, const node *read, size_t rank);

/** True if a value is a copy of an array of another device. */
static inline bool value_is_copy_between_devices(const value *v) {
  return value_is_copied_between_devices(v->tensor);
}

/** True if a value reads a scan. */
bool value_reads_scan(const values *all, const value *v);

/** True if a value depends on coordinates, and readers may compute it from its body. */
bool value_is_index_function(const value *v);

#endif
