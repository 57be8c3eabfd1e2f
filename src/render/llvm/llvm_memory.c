/* Renders loads, stores and prefetches for LLVM. A register element is a stack slot that mem2reg
   promotes; buffers and arrays in scratch memory lie at any address. A masked access is a branch
   around it. */
#include "render/llvm/ir_writer.h"

#include "target/machine.h"

/** The conjunction of masks, of which there is one. */
static const char *predicate(llvm_writer *w, const c_access *x) {
  const char *all = llvm_value(w, x->masks.at[0]);
  for (size_t i = 1; i < x->masks.n; i++)
    all = llvm_emit(w, "select i1 %s, i1 %s, i1 false", all, llvm_value(w, x->masks.at[i]));
  return all;
}

/* Addresses. */

/** The stack slot of a register's element, declared at its first use. */
static const char *slot_of(llvm_writer *w, const c_access *x) {
  if (x->cell->name) return x->cell->name;
  x->cell->name = arena_printf(w->arena, "%%r%u", w->n_slots++);
  str_addf(&w->head, "  %s = alloca %s\n", x->cell->name, llvm_type_of(w, x->storage->root));
  return x->cell->name;
}

static const char *base_of(llvm_writer *w, const node *root) {
  if (root->op == OP_PARAM) return arena_printf(w->arena, "%%p%lld", (long long)root->ints[0]);
  return arena_printf(w->arena, "%%s%" PRIu64, root->id);
}

static const char *address_of(llvm_writer *w, const c_access *x) {
  const node *root = x->storage->root;
  const char *address = llvm_value(w, x->address);
  return llvm_emit(w, "getelementptr %s, ptr %s, %s %s", llvm_memory_type(w, (dtype)root->dtype, 1),
                   base_of(w, root), llvm_type_of(w, x->address), address);
}

const char *llvm_address(llvm_writer *w, const c_access *x) { return address_of(w, x); }

void llvm_write_alloc(llvm_writer *w, const node *n) {
  if (c_is_register(n)) return;
  if (n->lanes > 1) llvm_fail_ill_formed(w, n, "has vectors, but is not in registers");
  int64_t offset = scratch_plan_offset(&w->scratch, n);
  if (offset < 0) return;
  str_addf(&w->head, "  %s = getelementptr i8, ptr %%scratch, i64 %lld\n", base_of(w, n),
           (long long)offset);
}

/* Branches. */

/** A branch around an access with masks. */
typedef struct branch {
  uint32_t block;
  bool is_open;
} branch;

static branch open_branch(llvm_writer *w, const c_access *x) {
  branch b = {.is_open = x->masks.n > 0};
  if (!b.is_open) return b;
  const char *condition = predicate(w, x);
  b.block = llvm_new_block(w);
  llvm_line(w, "  br i1 %s, label %%t%u, label %%e%u\nt%u:", condition, b.block, b.block, b.block);
  return b;
}

static void close_branch(llvm_writer *w, branch b) {
  if (b.is_open) w->masked.n = 0;
  if (b.is_open) llvm_line(w, "  br label %%e%u\ne%u:", b.block, b.block);
}

/* Loads. */

/** The rest of an address without a constant that it adds. */
static const node *split_address(const node *address, int64_t *offset) {
  bool is_sum = address->op == OP_ADD && node_is_const(address->src[1]);
  *offset = is_sum ? node_int(address->src[1]) : 0;
  return is_sum ? address->src[0] : address;
}

static bool has_masks(const llvm_masked_address *k, const c_access *x) {
  bool same = k->masks.n == x->masks.n;
  for (size_t i = 0; i < x->masks.n && same; i++) same = k->masks.at[i] == x->masks.at[i];
  return same;
}

/** The bytes from an address that is there to that of an access; false if they do not share it. */
static bool find_distance(const llvm_masked_address *k, const c_access *x, size_t bytes,
                          int64_t *distance) {
  int64_t offset, most = LLVM_ZEROS - (int64_t)bytes;
  const node *root = x->storage->root, *base = split_address(x->address, &offset);
  if (k->root != root || k->base != base || !has_masks(k, x)) return false;
  *distance = (offset - k->offset) * (int64_t)dtype_bytes((dtype)root->dtype);
  return *distance >= -most && *distance <= most;
}

/** The address of a masked load, which is that of zeros where the mask fails: without a branch the
    compiler may order loads as it needs them. */
static const char *masked_address(llvm_writer *w, const c_access *x, size_t bytes) {
  int64_t distance;
  for (size_t i = w->masked.n; i-- > 0;)
    if (find_distance(&w->masked.at[i], x, bytes, &distance))
      return llvm_emit(w, "getelementptr i8, ptr %s, i64 %lld", w->masked.at[i].value,
                       (long long)distance);
  llvm_masked_address k = {.root = x->storage->root, .masks = x->masks};
  k.base = split_address(x->address, &k.offset);
  const char *at = address_of(w, x), *all = predicate(w, x);
  k.value = llvm_emit(w, "select i1 %s, ptr %s, ptr getelementptr (i8, ptr @zeros, i64 %d)", all,
                      at, LLVM_ZEROS);
  vec_push(w->arena, &w->masked, k);
  return k.value;
}

static const char *load_element(llvm_writer *w, const node *n, const c_access *x) {
  if (c_is_register(x->storage->root))
    return llvm_emit(w, "load %s, ptr %s", llvm_type_of(w, n), slot_of(w, x));
  const char *type = llvm_memory_type(w, (dtype)n->dtype, n->lanes);
  size_t bytes = n->lanes * dtype_bytes((dtype)n->dtype);
  const char *at = x->masks.n ? masked_address(w, x, bytes) : address_of(w, x);
  return llvm_emit(w, "load %s, ptr %s, align 1", type, at);
}

/** Only a truth value in memory differs from its type: it is a byte. */
static const char *value_of_loaded(llvm_writer *w, const node *n, const c_access *x,
                                   const char *loaded) {
  if (n->dtype != DT_BOOL || c_is_register(x->storage->root)) return loaded;
  const char *type = llvm_memory_type(w, DT_BOOL, n->lanes);
  return llvm_emit(w, "icmp ne %s %s, %s", type, loaded, llvm_constant(w, DT_U8, n->lanes, 0));
}

const char *llvm_load(llvm_writer *w, const node *n) {
  c_access x = c_emission_access(&w->plan, n);
  const char *value = llvm_constant(w, (dtype)n->dtype, n->lanes, 0);
  if (n->lanes * dtype_bytes((dtype)n->dtype) > LLVM_ZEROS)
    llvm_fail_ill_formed(w, n, "has too many lanes");
  if (x.address) value = value_of_loaded(w, n, &x, load_element(w, n, &x));
  return value;
}

/* Stores. */

static const char *stored_value(llvm_writer *w, const node *x) {
  const char *value = llvm_value(w, x);
  if (x->dtype != DT_BOOL) return value;
  return llvm_emit(w, "zext %s %s to %s", llvm_type_of(w, x), value,
                   llvm_memory_type(w, DT_BOOL, x->lanes));
}

/** Non-temporal stores of a vector of bytes where the address is aligned to them, else of its
    halves, and of 16 bytes as usual. */
static void write_nontemporal(llvm_writer *w, const char *value, unsigned bytes, const char *at) {
  uint32_t block = llvm_new_block(w);
  const char *number = llvm_emit(w, "ptrtoint ptr %s to i64", at);
  const char *low = llvm_emit(w, "and i64 %s, %u", number, bytes - 1);
  const char *aligned = llvm_emit(w, "icmp eq i64 %s, 0", low);
  llvm_line(w, "  br i1 %s, label %%t%u, label %%f%u\nt%u:", aligned, block, block, block);
  llvm_line(w, "  store <%u x i8> %s, ptr %s, align %u, !nontemporal !0", bytes, value, at, bytes);
  llvm_line(w, "  br label %%e%u\nf%u:", block, block);
  for (unsigned i = 0; i < 2 && bytes > 16; i++) {
    str lanes = str_new(w->arena);
    for (unsigned k = 0; k < bytes / 2; k++)
      str_addf(&lanes, "%si32 %u", k ? ", " : "", k + i * bytes / 2);
    const char *half = llvm_emit(w, "shufflevector <%u x i8> %s, <%u x i8> poison, <%u x i32> <%s>",
                                 bytes, value, bytes, bytes / 2, str_text(&lanes));
    write_nontemporal(w, half, bytes / 2,
                      llvm_emit(w, "getelementptr i8, ptr %s, i64 %u", at, i * bytes / 2));
  }
  if (bytes == 16) llvm_line(w, "  store <16 x i8> %s, ptr %s, align 1", value, at);
  llvm_line(w, "  br label %%e%u\ne%u:", block, block);
}

static void write_to_memory(llvm_writer *w, const node *n, const c_access *x) {
  const node *stored = n->src[2];
  size_t bytes = stored->lanes * dtype_bytes((dtype)stored->dtype);
  const char *value = stored_value(w, stored), *at = address_of(w, x),
             *type = llvm_memory_type(w, (dtype)stored->dtype, stored->lanes);
  if (n->n_int && n->ints[0] == STORE_NONTEMPORAL && bytes >= MACHINE_NONTEMPORAL_LEAST_BYTES &&
      bytes <= MACHINE_NONTEMPORAL_MOST_BYTES) {
    w->has_nontemporal = true;
    value = llvm_emit(w, "bitcast %s %s to <%zu x i8>", type, value, bytes);
    write_nontemporal(w, value, (unsigned)bytes, at);
    return;
  }
  llvm_line(w, "  store %s %s, ptr %s, align 1", type, value, at);
}

void llvm_write_store(llvm_writer *w, const node *n) {
  c_access x = c_emission_access(&w->plan, n);
  branch b = open_branch(w, &x);
  if (c_is_register(x.storage->root))
    llvm_line(w, "  store %s %s, ptr %s", llvm_type_of(w, n->src[2]), llvm_value(w, n->src[2]),
              slot_of(w, &x));
  else
    write_to_memory(w, n, &x);
  close_branch(w, b);
}

void llvm_write_prefetch(llvm_writer *w, const node *n) {
  c_access x = c_emission_access(&w->plan, n);
  if (!x.address) return;
  llvm_line(w, "  call void @llvm.prefetch.p0(ptr %s, i32 0, i32 3, i32 1)", address_of(w, &x));
}
