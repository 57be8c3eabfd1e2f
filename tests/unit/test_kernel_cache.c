/* Tests eviction from the in-memory kernel cache: idle kernels go, the least recently used first,
   and their code with them; referenced kernels stay and run. Kernels come from one object of the
   compiler whose names and constants are replaced, so that thousands of them are quick to make. */
#include "../backend/sample.h"
#include "base/str.h"
#include "compile/compile_kernels.h"
#include "compile/disk_cache.h"
#include "compile/kernel_cache.h"
#include "device/cpu/c_compiler.h"
#include "device/cpu/cpu_backend.h"
#include "support/temporary.h"
#include "support/tensor_check.h"
#include "tensor/context/context.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum { KERNELS = 3000, MARK = 0x5eed1234, TOGETHER = 4, ENTRY_BYTES = 35 };

/** The CPU's backend, with counters and failures added. */
static tn_backend backend;
static atomic_size_t loaded, most_loaded, loads; /* loads: total */
static tn_status failing[2];                     /* the next loads fail so, each once */

static tn_status counting_load(void *device, const tn_code *code, void **module, tn_failure *f) {
  tn_status next = failing[0];
  if (next) {
    failing[0] = failing[1], failing[1] = TN_OK;
    return tn_fail(f, next, "the driver rejects the code");
  }
  if (atomic_fetch_add(&loaded, 1) >= most_loaded) {
    atomic_fetch_sub(&loaded, 1);
    return tn_fail(f, TN_ERR_MEMORY, "no room for a module");
  }
  tn_status s = cpu_backend.load(device, code, module, f);
  if (s)
    atomic_fetch_sub(&loaded, 1);
  else
    atomic_fetch_add(&loads, 1);
  return s;
}

static void counting_unload(void *module) {
  atomic_fetch_sub(&loaded, 1);
  cpu_backend.unload(module);
}

typedef struct fixture {
  diag diag;
  arena arena;
  registry *registry;
  tn_device *device;
  kernel_cache *cache;
  cc cc;
  cc_object one, four; /* objects with kernels numbered 0, and 0 to 3 */
  launch_exprs sizes;
} fixture;

/** Kernel i writes its number to buffer 0. */
static void key_of(uint64_t *i, cache_key *key) {
  *key = (cache_key){{*i * 0x9e3779b97f4a7c15, *i}, i, sizeof *i};
}

static void entry_of(uint64_t i, char entry[ENTRY_BYTES + 1]) {
  cache_key key;
  key_of(&i, &key);
  snprintf(entry, ENTRY_BYTES + 1, "tn_%016llx%016llx", (unsigned long long)key.hash[0],
           (unsigned long long)key.hash[1]);
}

static cc_object compile(fixture *f, uint64_t n) {
  cc_object o;
  str text = str_new(&f->arena);
  for (uint64_t i = 0; i < n; i++) {
    char entry[ENTRY_BYTES + 1];
    entry_of(i, entry);
    str_addf(&text, "int value_%d = %d; void %s(void *const *b) { *(int *)b[0] = value_%d; }\n",
             (int)i, n == 1 ? MARK : (int)i, entry, (int)i);
  }
  if (cc_compile(&f->cc, str_text(&text), text.n, NULL, &f->arena, &o, &f->diag) != TN_OK)
    diag_rethrow(&f->diag);
  return o;
}

static void prepare(void *arg) {
  fixture *f = arg;
  if (cc_find(&f->cc, NULL, &f->arena, &f->diag) != TN_OK) diag_rethrow(&f->diag);
  f->one = compile(f, 1);
  f->four = compile(f, TOGETHER);
  const node *none[3] = {NULL};
  f->sizes = launch_grid_compile(&f->arena, none, none, NULL, 0);
}

static int set_up(void **state) {
  fixture *f = calloc(1, sizeof *f);
  *state = f;
  backend = cpu_backend;
  backend.name = "COUNTED";
  backend.load = counting_load;
  backend.unload = counting_unload;
  loaded = 0;
  most_loaded = SIZE_MAX;
  arena_init(&f->arena, &mem_system, &f->diag);
  if (diag_catch(&f->diag, prepare, f) ||
      registry_open(&f->registry, &(registry_desc){0}, &f->diag) ||
      registry_add_backend(f->registry, &backend, &f->diag) ||
      registry_open_device(f->registry, "COUNTED", &f->device, &f->diag)) {
    print_message("%s\n", f->diag.text);
    return -1;
  }
  f->cache = kernel_cache_of(f->registry);
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  registry_close(f->registry);
  arena_free(&f->arena);
  free(f);
  return loaded != 0;
}

/* Kernels. */

static size_t replace(char *at, size_t bytes, const void *from, const void *to, size_t n) {
  size_t found = 0;
  for (size_t i = 0; i + n <= bytes; i++)
    if (!memcmp(at + i, from, n)) {
      memcpy(at + i, to, n);
      found++;
    }
  return found;
}

/** Publishes kernels as the result of one compiler call. */
static void publish(fixture *f, kernel *const k[], size_t n, const void *object, size_t bytes) {
  static const int64_t slots[] = {0};
  static const launch_operand arrays[] = {{true, sizeof(int), 0}};
  const launch_limits terms = {arrays, NULL, f->sizes};
  tn_program_spec spec[TOGETHER];
  compiled_kernel made[TOGETHER];
  diag d = {0};
  for (size_t i = 0; i < n; i++) {
    spec[i] = (tn_program_spec){.name = "k",
                                .entry = kernel_entry_name(k[i]),
                                .globals = slots,
                                .n_globals = 1,
                                .core_id = -1};
    made[i] = (compiled_kernel){k[i], &spec[i], f->sizes, terms};
  }
  const tn_code code = {TN_CODE_BYTES, object, bytes};
  if (kernel_cache_publish(f->cache, made, n, &code, NULL, &d)) abort();
}

static void compile_one(fixture *f, kernel *k, uint64_t i) {
  char *object = malloc(f->one.bytes), from[ENTRY_BYTES + 1];
  int32_t mark = MARK, number = (int32_t)i;
  entry_of(0, from);
  memcpy(object, f->one.data, f->one.bytes);
  if (!replace(object, f->one.bytes, from, kernel_entry_name(k), ENTRY_BYTES)) abort();
  if (replace(object, f->one.bytes, &mark, &number, sizeof mark) != 1) abort();
  publish(f, &k, 1, object, f->one.bytes);
  free(object);
}

/** Acquires a kernel's program; *claimed: it was not in the cache. */
static tn_status get(fixture *f, uint64_t i, tn_program **p, bool *claimed, diag *d) {
  cache_key key;
  kernel *k;
  kernel_cache_result answer;
  key_of(&i, &key);
  tn_status s = kernel_cache_lookup(f->cache, &key, KERNEL_CACHE_WAIT, &answer, &k, d);
  if (s) return s;
  *claimed = answer == KERNEL_CACHE_CLAIMED;
  if (*claimed) compile_one(f, k, i);
  s = kernel_cache_load_program(f->cache, k, f->device, p, d);
  kernel_cache_release(f->cache, k);
  return s;
}

static bool runs(fixture *f, tn_program *p, uint64_t i) {
  int32_t out = -1;
  tn_span span = {f->device, &out, 0, sizeof out};
  tn_launch launch = {.buffers = &span, .n_buffers = 1};
  tn_failure why = {TN_OK, ""};
  return program_execute(p, &launch, &why) == TN_OK && out == (int32_t)i;
}

static tn_program *must_get(fixture *f, uint64_t i, bool expect_claimed) {
  tn_program *p;
  bool claimed;
  if (get(f, i, &p, &claimed, &f->diag)) fail_msg("%s", f->diag.text);
  assert_int_equal(claimed, expect_claimed);
  if (!runs(f, p, i)) fail_msg("kernel %d is wrong", (int)i);
  return p;
}

static void use(fixture *f, uint64_t i, bool expect_claimed) {
  program_release(must_get(f, i, expect_claimed));
}

static size_t mappings(void) {
  FILE *maps = fopen("/proc/self/maps", "r");
  size_t lines = 0;
  for (int c; maps && (c = getc(maps)) != EOF;) lines += c == '\n';
  if (maps) fclose(maps);
  return lines;
}

/* Bounds. */

static void thousands_pass_through(void **state) {
  fixture *f = *state;
  enum { MOST = 16, SLACK = 16 };
  kernel_cache_set_limits(f->cache, MOST, 1 << 20);
  tn_program *kept = must_get(f, KERNELS, true);
  size_t before = mappings();
  for (uint64_t i = 0; i < KERNELS; i++) {
    use(f, i, true);
    kernel_cache_stats n = kernel_cache_get_stats(f->cache);
    assert_true(n.idle <= MOST && n.kernels == n.idle + 1 && loaded == n.kernels);
    assert_true(n.idle_bytes <= 1 << 20 && n.bytes > n.idle_bytes);
    if (i % 100 == 99) assert_true(mappings() <= before + MOST * 3 + SLACK);
  }
  assert_int_equal(kernel_cache_get_stats(f->cache).compiled, KERNELS + 1);
  assert_ptr_equal(must_get(f, KERNELS, false), kept);
  program_release(kept);
  program_release(kept);
  kernel_cache_set_limits(f->cache, 0, 0);
  kernel_cache_stats n = kernel_cache_get_stats(f->cache);
  assert_int_equal(n.kernels + n.bytes + n.idle + n.idle_bytes + loaded, 0);
}

static void the_least_recently_used_goes_first(void **state) {
  fixture *f = *state;
  kernel_cache_set_limits(f->cache, 3, SIZE_MAX);
  for (uint64_t i = 0; i < 3; i++) use(f, i, true);
  use(f, 0, false);
  use(f, 3, true); /* replaces 1 */
  use(f, 2, false);
  use(f, 0, false);
  use(f, 1, true); /* replaces 3 */
  use(f, 2, false);
  use(f, 3, true);
}

static void bytes_are_bounded(void **state) {
  fixture *f = *state;
  size_t each = sizeof(uint64_t) + 2 * f->one.bytes;
  kernel_cache_set_limits(f->cache, SIZE_MAX, 5 * each + 1);
  for (uint64_t i = 0; i < 20; i++) use(f, i, true);
  kernel_cache_stats n = kernel_cache_get_stats(f->cache);
  assert_int_equal(n.idle, 5);
  assert_int_equal(n.idle_bytes, 5 * each);
  assert_int_equal(n.bytes, 5 * each);
}

/** Kernels in use do not count towards the limit of idle ones. */
static void what_is_held_does_not_count(void **state) {
  fixture *f = *state;
  enum { HELD = 50 };
  tn_program *p[HELD];
  kernel_cache_set_limits(f->cache, 4, 4 * (sizeof(uint64_t) + 2 * f->one.bytes));
  for (uint64_t i = 0; i < HELD; i++) p[i] = must_get(f, i, true);
  for (uint64_t i = HELD; i < HELD + 4; i++) use(f, i, true);
  for (uint64_t i = HELD; i < HELD + 4; i++) use(f, i, false);
  assert_int_equal(kernel_cache_get_stats(f->cache).kernels, HELD + 4);
  for (uint64_t i = 0; i < HELD; i++) {
    assert_true(runs(f, p[i], i));
    program_release(p[i]);
  }
  assert_int_equal(kernel_cache_get_stats(f->cache).kernels, 4);
  for (uint64_t i = HELD - 4; i < HELD; i++) use(f, i, false);
}

static void code_goes_with_its_last_kernel(void **state) {
  fixture *f = *state;
  kernel *k[TOGETHER];
  tn_program *p[TOGETHER];
  kernel_cache_result answer;
  for (uint64_t i = 0; i < TOGETHER; i++) {
    cache_key key;
    key_of(&i, &key);
    assert_int_equal(
        kernel_cache_lookup(f->cache, &key, KERNEL_CACHE_WAIT, &answer, &k[i], &f->diag), TN_OK);
    assert_int_equal(answer, KERNEL_CACHE_CLAIMED);
  }
  publish(f, k, TOGETHER, f->four.data, f->four.bytes);
  for (size_t i = 0; i < TOGETHER; i++) {
    assert_int_equal(kernel_cache_load_program(f->cache, k[i], f->device, &p[i], &f->diag), TN_OK);
    kernel_cache_release(f->cache, k[i]);
  }
  assert_int_equal(loaded, 1);
  size_t code = 2 * f->four.bytes, key = sizeof(uint64_t);
  for (size_t i = 0; i < TOGETHER - 1; i++) program_release(p[i]);
  assert_int_equal(kernel_cache_get_stats(f->cache).idle_bytes, (TOGETHER - 1) * key);
  kernel_cache_set_limits(f->cache, 0, 0);
  assert_int_equal(loaded, 1);
  assert_int_equal(kernel_cache_get_stats(f->cache).kernels, 1);
  assert_int_equal(kernel_cache_get_stats(f->cache).bytes, key + code);
  assert_true(runs(f, p[TOGETHER - 1], TOGETHER - 1));
  kernel_cache_set_limits(f->cache, 1, SIZE_MAX);
  program_release(p[TOGETHER - 1]);
  assert_int_equal(kernel_cache_get_stats(f->cache).idle_bytes, key + code);
  use(f, TOGETHER - 1, false);
  kernel_cache_set_limits(f->cache, 1, key + code - 1);
  assert_int_equal(loaded, 0);
  assert_int_equal(kernel_cache_get_stats(f->cache).bytes, 0);
}

/* Code on disk. */

static void take_remark(void *user, const char *text) {
  (void)user;
  fail_msg("%s", text);
}

/** Compiles two kernels or finds them on disk, on a device of a separate registry. */
static kernel_cache_stats find_two(fixture *f, disk_cache *disk, size_t *n_loads) {
  tn_ir *ir;
  assert_int_equal(tn_ir_open(NULL, &ir), TN_OK);
  registry *r;
  tn_device *v;
  tn_program *p[2];
  compile_options o = {.disk = disk};
  const node *nodes[2];
  for (int i = 0; i < 2; i++)
    assert_non_null(nodes[i] = sample_program(ir, "CPU", i ? "one" : "two", 3 + i));
  size_t before = loads;
  if (registry_open(&r, &(registry_desc){.threads = 1}, &f->diag) ||
      registry_add_backend(r, &backend, &f->diag) ||
      registry_open_device(r, "COUNTED", &v, &f->diag) ||
      device_target_find(v, NULL, &o.target, &f->diag) ||
      compile_kernels(&o, ir, nodes, 2, p, &f->diag))
    fail_msg("%s", f->diag.text);
  kernel_cache_stats n = kernel_cache_get_stats(kernel_cache_of(r));
  *n_loads = loads - before;
  for (int i = 0; i < 2; i++) program_release(p[i]);
  registry_close(r);
  tn_ir_close(ir);
  return n;
}

static void found_code_is_loaded_once(void **state) {
  fixture *f = *state;
  disk_cache *disk;
  size_t loads_compiled, loads_found;
  char *folder = temporary_folder(&f->arena);
  assert_true(disk_cache_open(&disk, folder, take_remark, NULL, &mem_system));
  kernel_cache_stats compiled = find_two(f, disk, &loads_compiled);
  kernel_cache_stats found = find_two(f, disk, &loads_found);
  disk_cache_close(disk);
  assert_int_equal(temporary_remove(&f->arena, folder), 0);
  assert_int_equal(compiled.compiled, 2);
  assert_int_equal(loads_compiled, 1);
  assert_int_equal(found.compiled, 0);
  assert_int_equal(loads_found, 1);
  assert_int_equal(found.bytes, compiled.bytes); /* the module counts once here too */
}

static void count_remark(void *user, const char *text) {
  (void)text;
  ++*(int *)user;
}

/** Code on disk that loads for want of nothing but memory, and then not at all, as after a change
    of a driver, is dropped and compiled again. */
static void rejected_code_is_compiled_again(void **state) {
  fixture *f = *state;
  disk_cache *disk;
  size_t n_loads;
  int n_remarks = 0;
  char *folder = temporary_folder(&f->arena);
  assert_true(disk_cache_open(&disk, folder, count_remark, &n_remarks, &mem_system));
  assert_int_equal(find_two(f, disk, &n_loads).compiled, 2);
  failing[0] = TN_ERR_MEMORY, failing[1] = TN_ERR_FORMAT;
  kernel_cache_stats again = find_two(f, disk, &n_loads);
  assert_int_equal(again.found, 2);
  assert_true(again.compiled > 0);
  assert_int_equal(failing[0], TN_OK);
  assert_true(n_remarks > 0);
  kernel_cache_stats found = find_two(f, disk, &n_loads);
  disk_cache_close(disk);
  assert_int_equal(temporary_remove(&f->arena, folder), 0);
  assert_int_equal(found.compiled, 0);
}

/* Stages. */

/** A linear form that is not well-formed reaches no renderer, in any build. */
static void broken_programs_are_not_rendered(void **state) {
  fixture *f = *state;
  tn_ir *ir;
  compile_options o = {0};
  tn_program *p = NULL;
  assert_int_equal(tn_ir_open(NULL, &ir), TN_OK);
  const node *right = sample_program(ir, "CPU", "broken", 2), *parts[3];
  assert_non_null(right);
  for (int i = 0; i < 3; i++) parts[i] = right->src[i];
  parts[2] = ir_node(ir, OP_LINEAR, DT_VOID, parts[2]->src + 1, parts[2]->n_src - 1, NULL, 0);
  const node *wrong = ir_node(ir, OP_PROGRAM, DT_VOID, parts, 3, NULL, 0);
  assert_int_equal(device_target_find(f->device, NULL, &o.target, &f->diag), TN_OK);
  assert_int_equal(compile_kernels(&o, ir, &wrong, 1, &p, &f->diag), TN_ERR_INTERNAL);
  if (!strstr(f->diag.text, "a source is not listed above")) fail_msg("%s", f->diag.text);
  assert_null(p);
  assert_int_equal(kernel_cache_get_stats(f->cache).kernels, 0);
  tn_ir_close(ir);
}

/* Exhausted memory. */

static void idle_kernels_make_room(void **state) {
  fixture *f = *state;
  enum { ROOM = 8 };
  tn_program *p[ROOM], *none;
  bool claimed;
  most_loaded = ROOM;
  for (uint64_t i = 0; i < ROOM; i++) use(f, i, true);
  p[0] = must_get(f, ROOM, true);
  assert_int_equal(loaded, 1);
  for (uint64_t i = 1; i < ROOM; i++) p[i] = must_get(f, ROOM + i, true);
  assert_int_equal(get(f, 99, &none, &claimed, &f->diag), TN_ERR_MEMORY);
  assert_null(none);
  assert_string_equal(f->diag.text, "no room for a module");
  program_release(p[0]);
  use(f, 99, false); /* compiled before, loadable now */
  for (uint64_t i = 1; i < ROOM; i++) program_release(p[i]);
}

/** Uses up the process's mappings by protecting every other page of one. */
static bool take_mappings(char *at, size_t pages, size_t page) {
  for (size_t i = 1; i < pages; i += 2)
    if (mprotect(at + i * page, page, PROT_READ)) return true;
  return false;
}

static void mappings_run_out(void **state) {
  fixture *f = *state;
  size_t most = 0, page = (size_t)sysconf(_SC_PAGESIZE);
  FILE *limit = fopen("/proc/sys/vm/max_map_count", "r");
  if (!limit || fscanf(limit, "%zu", &most) != 1) most = 0;
  if (limit) fclose(limit);
  if (IS_SANITIZED || !most || most > 1 << 18) {
    print_message("skipped: maps are not limited, or a sanitizer has most\n");
    skip();
  }
  enum { IDLE = 40 };
  for (uint64_t i = 0; i < IDLE; i++) use(f, i, true);
  size_t pages = most + 2;
  char *at = mmap(NULL, pages * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(at != MAP_FAILED);
  bool all = take_mappings(at, pages, page);
  tn_program *p, *none = NULL;
  bool claimed;
  tn_status made = get(f, IDLE, &p, &claimed, &f->diag);
  bool right = made == TN_OK && runs(f, p, IDLE);
  size_t left = loaded;
  all = take_mappings(at, pages, page) && all;
  diag told = {0};
  tn_status refused = get(f, IDLE + 1, &none, &claimed, &told);
  munmap(at, pages * page);
  assert_true(all);
  if (made != TN_OK) fail_msg("%s", f->diag.text);
  assert_true(right);
  assert_int_equal(left, 1);
  assert_int_equal(refused, TN_ERR_MEMORY);
  if (!strstr(told.text, "memory mappings;") || !strstr(told.text, "vm.max_map_count="))
    fail_msg("%s", told.text);
  use(f, IDLE + 1, false);
  program_release(p);
}

/* Threads. */

static kernel_cache_result look_up(fixture *f, uint64_t i, unsigned flags, kernel **k) {
  cache_key key;
  kernel_cache_result answer;
  key_of(&i, &key);
  assert_int_equal(kernel_cache_lookup(f->cache, &key, flags, &answer, k, &f->diag), TN_OK);
  return answer;
}

/** A kernel that the background compiles is compiled a second time by who needs it; the background
    waits for others, and gets what is published first. */
static void nobody_waits_for_the_background(void **state) {
  fixture *f = *state;
  enum { BACK = KERNEL_CACHE_BACKGROUND };
  kernel *back, *front, *none, *again;
  assert_int_equal(look_up(f, 0, BACK, &back), KERNEL_CACHE_CLAIMED);
  assert_int_equal(look_up(f, 0, BACK, &none), KERNEL_CACHE_PENDING);
  assert_int_equal(look_up(f, 0, KERNEL_CACHE_WAIT, &front), KERNEL_CACHE_CLAIMED);
  assert_string_not_equal(kernel_entry_name(front), kernel_entry_name(back));
  assert_int_equal(look_up(f, 0, BACK, &none), KERNEL_CACHE_PENDING);
  assert_int_equal(look_up(f, 0, 0, &none), KERNEL_CACHE_PENDING);
  compile_one(f, back, 0);
  assert_int_equal(look_up(f, 0, KERNEL_CACHE_WAIT, &again), KERNEL_CACHE_HIT);
  assert_ptr_equal(again, back);
  kernel_cache_release(f->cache, again);
  kernel_cache_release(f->cache, front); /* not published */
  kernel_cache_release(f->cache, back);
  use(f, 0, false);

  assert_int_equal(look_up(f, 1, BACK, &back), KERNEL_CACHE_CLAIMED);
  assert_int_equal(look_up(f, 1, 0, &front), KERNEL_CACHE_CLAIMED);
  kernel_cache_release(f->cache, front); /* failed: the background's is there still */
  assert_int_equal(look_up(f, 1, BACK, &none), KERNEL_CACHE_PENDING);
  assert_int_equal(look_up(f, 1, 0, &front), KERNEL_CACHE_CLAIMED);
  publish(f, &front, 1, "code", 4);
  assert_int_equal(look_up(f, 1, BACK, &again), KERNEL_CACHE_HIT);
  assert_ptr_equal(again, front);
  kernel_cache_release(f->cache, again);
  kernel_cache_release(f->cache, back);
  assert_int_equal(look_up(f, 1, 0, &again), KERNEL_CACHE_HIT);
  kernel_cache_release(f->cache, again);
  kernel_cache_release(f->cache, front);
}

enum { THREADS = 4, TURNS = 600, DIFFERENT = 40 };

typedef struct sharer {
  fixture *f;
  uint64_t random;
  atomic_bool *compiling; /* one flag per kernel */
  tn_program *held[3];
  uint64_t number[3];
  bool wrong;
} sharer;

static tn_status share_one(sharer *s, uint64_t i, tn_program **p) {
  fixture *f = s->f;
  cache_key key;
  kernel *k;
  kernel_cache_result answer;
  diag d = {0};
  key_of(&i, &key);
  tn_status status = kernel_cache_lookup(f->cache, &key, KERNEL_CACHE_WAIT, &answer, &k, &d);
  if (status) return status;
  if (answer == KERNEL_CACHE_CLAIMED) {
    s->wrong |= atomic_exchange(&s->compiling[i], true); /* must be the only compilation of it */
    bool gives_up = s->random % 8 == 0;
    if (!gives_up) compile_one(f, k, i);
    atomic_store(&s->compiling[i], false);
    if (gives_up) {
      kernel_cache_release(f->cache, k);
      return TN_ERR_COMPILE;
    }
  }
  status = kernel_cache_load_program(f->cache, k, f->device, p, &d);
  kernel_cache_release(f->cache, k);
  return status;
}

static void *share(void *arg) {
  sharer *s = arg;
  for (int turn = 0; turn < TURNS; turn++) {
    s->random = s->random * 6364136223846793005 + 1442695040888963407;
    uint64_t i = s->random >> 33 & 0xffff, slot = i % 3;
    program_release(s->held[slot]);
    s->held[slot] = NULL;
    s->number[slot] = i % DIFFERENT;
    if (share_one(s, s->number[slot], &s->held[slot])) continue;
    for (int k = 0; k < 3; k++) {
      if (!s->held[k]) continue;
      program_retain(s->held[k]);
      s->wrong |= !runs(s->f, s->held[k], s->number[k]);
      program_release(s->held[k]);
    }
  }
  for (int k = 0; k < 3; k++) program_release(s->held[k]);
  return NULL;
}

static void threads_share_a_small_cache(void **state) {
  fixture *f = *state;
  static atomic_bool compiling[DIFFERENT];
  pthread_t threads[THREADS];
  sharer sharers[THREADS];
  kernel_cache_set_limits(f->cache, 4, SIZE_MAX);
  for (int i = 0; i < THREADS; i++) {
    sharers[i] = (sharer){.f = f, .random = (uint64_t)i, .compiling = compiling};
    assert_int_equal(pthread_create(&threads[i], NULL, share, &sharers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    assert_false(sharers[i].wrong);
  }
  kernel_cache_stats n = kernel_cache_get_stats(f->cache);
  assert_int_equal(n.kernels, 4);
  assert_int_equal(n.idle, 4);
  assert_int_equal(loaded, 4);
  assert_int_equal(n.bytes, n.idle_bytes);
  assert_true(n.found > 0 && n.compiled > 4);
}

/* Contexts. */

/** Makes a different graph for each n. */
static tn_tensor *graph(tn_context *c, tn_dim n) {
  return tn_mul(tn_full(c, tn_shape(n), TN_F32, 3), tn_cast(tn_arange(c, 0, n, 1, TN_I32), TN_F32));
}

/** Plans that a context drops release their programs: neither kernels nor memory grow. */
static void steps_leave_nothing_behind(void **state) {
  (void)state;
  enum { MOST = 8, PLANS = 64, SETTLED = 1500 };
  counting counting = {0};
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.device = "NULL";
  d.cached_bytes = 0;
  d.allocator = (tn_allocator){counting_alloc, counting_release, &counting, counting_destroy};
  tn_context *c = tn_open(&d);
  kernel_cache *cache = kernel_cache_of(c->registry);
  kernel_cache_set_limits(cache, MOST, SIZE_MAX);
  size_t settled = 0;
  for (int i = 1; i <= KERNELS; i++) {
    tn_scope_begin(c);
    check_ok(c, tn_realize(c, (tn_tensor *[]){graph(c, i)}, 1));
    check_ok(c, tn_scope_end(c));
    kernel_cache_stats n = kernel_cache_get_stats(cache);
    assert_true(n.idle <= MOST && n.kernels <= MOST + PLANS);
    if (i == SETTLED) settled = counting.out;
  }
  assert_int_equal(kernel_cache_get_stats(cache).compiled, KERNELS);
  assert_int_equal(kernel_cache_get_stats(cache).kernels, MOST + PLANS);
  if (counting.out > settled + 4096)
    fail_msg("%zu bytes after %d steps, %zu after %d", settled, SETTLED, (size_t)counting.out,
             KERNELS);
  assert_int_equal(tn_close(c), TN_OK);
  assert_int_equal(counting.out, 0);
}

static void results_are_right_where_nothing_is_kept(void **state) {
  (void)state;
  enum { STEPS = 80 };
  counting counting = {0};
  tn_context *c = open_counting(&counting, "CPU");
  kernel_cache_set_limits(kernel_cache_of(c->registry), 0, 0);
  for (int i = 1; i <= STEPS; i++)
    for (int twice = 0; twice < 2; twice++) {
      float got[STEPS];
      tn_scope_begin(c);
      check_ok(c, tn_read(graph(c, i), TN_F32, got, (size_t)i * sizeof *got));
      check_ok(c, tn_scope_end(c));
      for (int k = 0; k < i; k++) assert_true(got[k] == 3 * (float)k);
    }
  assert_int_equal(kernel_cache_get_stats(kernel_cache_of(c->registry)).compiled, STEPS);
  assert_int_equal(kernel_cache_get_stats(kernel_cache_of(c->registry)).kernels, 64);
  assert_int_equal(tn_close(c), TN_OK);
  assert_int_equal(counting.out, 0);
}

/** Programs that are measured are always compiled, and nobody else gets them. */
static void trials_are_not_kept(void **state) {
  fixture *f = *state;
  kernel *k[3], *none;
  tn_program *p;
  for (int i = 0; i < 2; i++) {
    assert_int_equal(look_up(f, 0, KERNEL_CACHE_TRIAL, &k[i]), KERNEL_CACHE_CLAIMED);
    compile_one(f, k[i], 0);
  }
  assert_string_not_equal(kernel_entry_name(k[0]), kernel_entry_name(k[1]));
  assert_int_equal(look_up(f, 0, 0, &k[2]), KERNEL_CACHE_CLAIMED);
  assert_int_equal(look_up(f, 0, 0, &none), KERNEL_CACHE_PENDING);
  kernel_cache_release(f->cache, k[2]); /* not published */
  kernel_cache_release(f->cache, k[1]);
  assert_int_equal(kernel_cache_load_program(f->cache, k[0], f->device, &p, &f->diag), TN_OK);
  kernel_cache_release(f->cache, k[0]);
  assert_true(runs(f, p, 0) && loaded == 1);
  program_release(p);
  const kernel_cache_stats n = kernel_cache_get_stats(f->cache);
  assert_true(!n.kernels && !n.idle && !n.bytes && !n.idle_bytes && !loaded);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {TEST(thousands_pass_through),
                                     TEST(the_least_recently_used_goes_first),
                                     TEST(bytes_are_bounded),
                                     TEST(what_is_held_does_not_count),
                                     TEST(code_goes_with_its_last_kernel),
                                     TEST(nobody_waits_for_the_background),
                                     TEST(trials_are_not_kept),
                                     TEST(found_code_is_loaded_once),
                                     TEST(rejected_code_is_compiled_again),
                                     TEST(broken_programs_are_not_rendered),
                                     TEST(idle_kernels_make_room),
                                     TEST(mappings_run_out),
                                     TEST(threads_share_a_small_cache),
                                     cmocka_unit_test(steps_leave_nothing_behind),
                                     cmocka_unit_test(results_are_right_where_nothing_is_kept)};
  return cmocka_run_group_tests_name("kernel_cache", tests, NULL, NULL);
}
