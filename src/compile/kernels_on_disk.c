/* Kernels of the disk cache. A file has the code of all kernels that one call of the compiler made:
   what is found is loaded at once, and publishes every request that it has the kernel of. Files
   that cannot be read or loaded are rejected, so that the kernel is compiled in their place. */
#include "compile/code_record.h"
#include "compile/compilation.h"

static bool fits_request(compilation *c, const request *r, const code_record_kernel *k) {
  const tn_program_spec *s = &k->spec;
  if (!r->record) return code_record_fits_kernel(k, c->ir, request_sink(r));
  return program_record_launches_alike(r->record, &(program_record){.n_globals = s->n_globals,
                                                                    .n_values = s->n_values,
                                                                    .globals = s->globals,
                                                                    .value_names = s->value_names});
}

/** True for failures that say nothing against the code: want of memory, and a device that fails. */
static bool is_of_machine(tn_status status) {
  return status == TN_ERR_MEMORY || status == TN_ERR_DEVICE;
}

/** Loads a record's code, which is then own.module. False if the code cannot be loaded, lacks one
   of the functions of its `n` kernels, or exceeds the target's scratch memory. Where the machine
   fails the record is kept, and loading the programs reports it: then the module may be NULL. */
static bool load_record(compilation *c, const code_record *p, size_t n) {
  tn_device *v = c->target->device;
  const tn_backend *b = v->backend;
  tn_failure f;
  bool fits = true;
  if (p->code.kind == TN_CODE_PRODUCT && !b->products) return false;
  tn_status status = b->load(v->state, &p->code, &c->own.module, &f);
  if (status) c->own.module = NULL;
  if (status) return is_of_machine(status);
  for (size_t i = 0; i < n && !status; i++) {
    const tn_program_spec *s = &p->kernels[i].spec;
    const tn_program_facts facts = {.entry = s->entry,
                                    .n_globals = s->n_globals,
                                    .n_values = s->n_values,
                                    .scratch = s->scratch,
                                    .core_id = s->core_id,
                                    .value_names = s->value_names,
                                    .globals = s->globals};
    void *program;
    status = b->program(c->own.module, &facts, &program, &f);
    if (!status) b->program_free(program);
    fits = fits && compilation_fits_scratch(c, s);
  }
  return fits && (!status || is_of_machine(status));
}

static void unload_record(compilation *c) {
  if (c->own.module) c->target->device->backend->unload(c->own.module);
  c->own.module = NULL;
}

/** Publishes all kernels that are claimed and in the file at hand, with the module that was loaded
    from it. */
static void publish_record(compilation *c, const code_record *p) {
  const work *w = &c->work;
  compiled_kernel *compiled = arena_alloc(c->arena, w->n * sizeof *compiled);
  size_t n = 0;
  for (size_t i = 0; i < w->n; i++) {
    request *r = &w->requests[i];
    size_t at = r->claimed ? disk_cache_file_find(&c->own.file, &r->key) : SIZE_MAX;
    bool fits = at != SIZE_MAX && fits_request(c, r, &p->kernels[at]);
    r->is_other = at != SIZE_MAX && r->record && !fits;
    if (!fits) continue;
    r->spec = p->kernels[at].spec;
    r->spec.name = request_name(c, r);
    r->claimed = false;
    compiled[n++] =
        (compiled_kernel){r->kernel, &r->spec, p->kernels[at].sizes, p->kernels[at].limits};
  }
  if (!n) return;
  const found_code found = {c->target->device, c->own.module};
  if (kernel_cache_publish(c->cache, compiled, n, &p->code, &found, c->diag)) diag_rethrow(c->diag);
  c->own.module = NULL;
}

void request_find_on_disk(compilation *c, request *r) {
  code_record p;
  disk_cache_file *f = &c->own.file;
  if (!disk_cache_read(c->disk, &r->key, f)) return;
  if (code_record_read(&p, f->content, f->content_bytes, f->n_keys, c->arena) &&
      load_record(c, &p, f->n_keys))
    publish_record(c, &p);
  unload_record(c);
  if (r->claimed && !r->is_other) disk_cache_reject(c->disk, &r->key, "no loadable kernel");
  disk_cache_free_file(c->disk, f);
}

/** The content of a file: kernels that one call of the compiler made. */
typedef struct compiled_batch {
  const compiled_kernel *kernels;
  size_t n;
  const tn_code *code;
} compiled_batch;

static void write_batch(void *user, str *to) {
  const compiled_batch *b = user;
  code_record_write(to, b->code, b->kernels, b->n);
}

void requests_keep_on_disk(compilation *c, request *const requests[],
                           const compiled_kernel kernels[], size_t n, const tn_code *code) {
  const cache_key *keys[BATCH_MOST];
  compiled_batch b = {kernels, n, code};
  for (size_t i = 0; i < n; i++) keys[i] = &requests[i]->key;
  disk_cache_write(c->disk, keys, n, write_batch, &b);
}

void compilation_free_file(compilation *c) {
  unload_record(c);
  if (c->options->disk) disk_cache_free_file(c->options->disk, &c->own.file);
}
