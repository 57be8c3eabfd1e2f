/* The thread waits for jobs in a list, and runs the first. Whoever frees a job's owner takes the
   job from the list; if it is running, sets a flag that ends it soon, and waits. */
#include "tensor/plan/background_jobs.h"

#include <sys/resource.h>

struct background_jobs {
  const mem *mem;
  thread thread;
  mutex lock; /* of all that follows */
  condition changed;
  background_job *first; /* that waits */
  background_job *now;   /* that runs; NULL: none */
  bool is_closing;
  atomic_bool is_cancelled; /* the job that runs */
};

static void run_first(background_jobs *k) {
  background_job *job = k->now = k->first;
  k->first = job->next;
  job->is_waiting = false;
  mutex_unlock(&k->lock);
  job->run(job, &k->is_cancelled);
  mutex_lock(&k->lock);
  k->now = NULL;
  atomic_store(&k->is_cancelled, false);
  condition_broadcast(&k->changed);
}

static void *run_thread(void *arg) {
  background_jobs *k = arg;
  setpriority(PRIO_PROCESS, 0, 19); /* of this thread, and of the programs that it starts */
  mutex_lock(&k->lock);
  while (!k->is_closing) {
    if (k->first)
      run_first(k);
    else
      condition_wait(&k->changed, &k->lock);
  }
  mutex_unlock(&k->lock);
  return NULL;
}

/* Opening and closing. */

static void free_jobs(background_jobs *k) {
  condition_free(&k->changed);
  mutex_free(&k->lock);
  mem_free(k->mem, k, sizeof *k);
}

static background_jobs *open_jobs(const mem *m) {
  diag unreported = {0};
  background_jobs *k = mem_calloc(m, 1, sizeof *k);
  if (!k) return NULL;
  k->mem = m;
  mutex_init(&k->lock);
  condition_init(&k->changed);
  atomic_init(&k->is_cancelled, false);
  if (thread_start(&k->thread, run_thread, k, &unreported) == TN_OK) return k;
  free_jobs(k);
  return NULL;
}

static void close_jobs(background_jobs *k) {
  mutex_lock(&k->lock);
  k->is_closing = true;
  condition_broadcast(&k->changed);
  mutex_unlock(&k->lock);
  thread_join(k->thread);
  free_jobs(k);
}

/** The context's list, opened when it is first needed; NULL if it cannot be. */
static background_jobs *get_jobs(tn_context *c) {
  background_jobs *known = atomic_load(&c->background);
  if (known) return known;
  background_jobs *made = open_jobs(&c->mem);
  if (made && !atomic_compare_exchange_strong(&c->background, &known, made)) close_jobs(made);
  return atomic_load(&c->background);
}

void background_jobs_close(tn_context *c) {
  background_jobs *k = atomic_exchange(&c->background, NULL);
  if (k) close_jobs(k);
}

/* Jobs. */

static void append(background_jobs *k, background_job *job) {
  background_job **end = &k->first;
  while (*end) end = &(*end)->next;
  *end = job;
  job->next = NULL;
  job->is_waiting = true;
}

void background_jobs_add(tn_context *c, background_job *job) {
  background_jobs *k = get_jobs(c);
  if (!k) return;
  mutex_lock(&k->lock);
  if (!job->is_waiting) append(k, job);
  condition_broadcast(&k->changed);
  mutex_unlock(&k->lock);
}

void background_jobs_cancel(tn_context *c, background_job *job) {
  background_jobs *k = atomic_load(&c->background);
  if (!k) return;
  mutex_lock(&k->lock);
  for (background_job **at = &k->first; *at; at = &(*at)->next)
    if (*at == job) {
      *at = job->next;
      job->is_waiting = false;
      break;
    }
  while (k->now == job) {
    atomic_store(&k->is_cancelled, true);
    condition_wait(&k->changed, &k->lock);
  }
  mutex_unlock(&k->lock);
}
