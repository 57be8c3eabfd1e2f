/* The store of tuned schedules: a file to which each measurement of a kernel's schedule is appended
   as a line of text, and from which later contexts read the schedules to use. A line is written at
   once, so that a killed process loses at most its last one and writers do not mix theirs; lines
   that are torn, or of another form, are ignored. The file is read once, when a kernel is first
   looked up. Any thread may call the functions. */
#ifndef TENON_COMPILE_TUNED_STORE_H
#define TENON_COMPILE_TUNED_STORE_H

#include "base/map.h"
#include "compile/disk_cache.h"
#include "compile/tuned_kept.h"

#include <tenon/context.h>

typedef struct tuned_store tuned_store;

/** Outcomes of a measurement: name and word in the file. */
#define TUNED_VERDICTS(VERDICT)                                                          \
  VERDICT(KEPT, "kept")       /* runs use the schedule: the network is faster with it */ \
  VERDICT(FASTER, "faster")   /* the kernel is; the network was not measured yet */      \
  VERDICT(SLOWER, "slower")   /* the kernel is not faster */                             \
  VERDICT(EQUAL, "equal")     /* its code is that of another schedule */                 \
  VERDICT(WRONG, "wrong")     /* its results differ, or outputs of the network */        \
  VERDICT(FAILED, "failed")   /* it could not be compiled or run */                      \
  VERDICT(DROPPED, "dropped") /* the kernel is faster, the network is not */

typedef enum tuned_verdict {
#define VERDICT(name, text) TUNED_##name,
  TUNED_VERDICTS(VERDICT)
#undef VERDICT
} tuned_verdict;

/** A schedule with times in ns: predicted as the search compares them (codegen_predict), and of a
   run of the kernel; 0: not measured. */
typedef struct tuned_schedule {
  const char *decisions; /* decisions_text; "-": the schedule that the search finds;
                            "library:NAME": a call of a library in place of the kernel */
  double predicted, measured;
} tuned_schedule;

/** A line of the store. */
typedef struct tuned_record {
  const char *key; /* tuned_key_make's */
  tuned_verdict verdict;
  tuned_schedule schedule, other; /* `other` is the one that it was compared with */
  bool is_foreign;                /* another build of the library measured it; not appended */
} tuned_record;

/** Receives a line for the log: a warning, or what the file holds. */
typedef void tuned_store_log(void *user, tn_log_level level, const char *text);

/** Opens the store in a file ("off": *out is NULL); NULL: the file "tuned" in the folder of the
    disk cache, and none without one; that file is used only where the cache uses the folder, and if
    it is no link, is the user's own and nobody else can write to it. A relative path is one of the
    present working directory. Nothing is read yet; when it is, a file
    that was named and is not there is a warning. False without memory. */
bool tuned_store_open(tuned_store **out, const char *file, const disk_cache *cache,
                      tuned_store_log *log, void *user, const mem *m);
void tuned_store_close(tuned_store *s); /* NULL is allowed */

/** The path of the file, absolute; "" if that is too long. */
const char *tuned_store_path(const tuned_store *s);

/** Kernels for which the file has a schedule or a library. */
size_t tuned_store_count(tuned_store *s);

/** Appends a line; a record of KEPT also is what lookups find from now on. TN_ERR_IO where it
    cannot be written. */
tn_status tuned_store_append(tuned_store *s, const tuned_record *r, diag *d);

/** TN_ERR_IO if lines cannot be appended; creates the file. */
tn_status tuned_store_check_writable(tuned_store *s, diag *d);

/** Calls `visit` for each valid line, in order; texts are valid during the call. */
tn_status tuned_store_read(tuned_store *s, void (*visit)(void *user, const tuned_record *r),
                           void *user, diag *d);

/** Devices whose libraries kernels may be calls of: none, those whose library is usual
    (tn_product_library), or all. */
typedef enum library_use { LIBRARIES_OFF, LIBRARIES_USUAL, LIBRARIES_ON } library_use;

/** The schedules to compile with. */
typedef struct tuned_choice {
  tuned_store *store;      /* NULL: none */
  const string_map *trial; /* decisions by key that come before those of the store; NULL: none */
  size_t *used;            /* counts the kernels that have one; NULL: nothing does */
  bool is_tunable;         /* what is compiled may be tuned, so the file need not be there yet */
  library_use libraries;
} tuned_choice;

/** True if no kernel has one. */
bool tuned_choice_is_empty(const tuned_choice *t);

/** The decisions for a kernel, valid as long as the store; NULL: none. Where calls of libraries are
    not allowed, the last ones of a schedule; see tuned_kept.h. */
const char *tuned_choice_find(const tuned_choice *t, const char *key);

#endif
