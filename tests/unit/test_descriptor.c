/* Tests ABI compatibility of public descriptor structs, which begin with their size: callers built
   against an older or a newer header than the library's are served or refused with a message. */
#include "support/tensor_check.h"
#include "tensor/context/descriptor.h"

/** Every versioned type, its INIT, and the bytes of its version 1 on this machine. */
#define TYPES(X)                             \
  X(tn_open_desc, TN_OPEN_DESC_INIT, 176)    \
  X(tn_plan_desc, TN_PLAN_DESC_INIT, 24)     \
  X(tn_model_desc, TN_MODEL_DESC_INIT, 16)   \
  X(tn_model_size, TN_MODEL_SIZE_INIT, 48)   \
  X(tn_custom_desc, TN_CUSTOM_DESC_INIT, 56) \
  X(tn_conv_desc, TN_CONV_DESC_INIT, 136)    \
  X(tn_pool_desc, TN_POOL_DESC_INIT, 136)    \
  X(tn_device_info, TN_DEVICE_INFO_INIT, 48) \
  X(tn_port, TN_PORT_INIT, 224)

/* Older callers: the library's struct has one field more. */

#define CHECK_OLDER(type, init, first)                                                      \
  {                                                                                         \
    struct {                                                                                \
      type known;                                                                           \
      int64_t later;                                                                        \
    } own = {init, 7}, back = {init, 7};                                                    \
    type old = init;                                                                        \
    diag d = {0};                                                                           \
    assert_true(sizeof old >= first && old.size == sizeof old);                             \
    memset((char *)&old + sizeof old.size, 5, first - sizeof old.size);                     \
    old.size = first;                                                                       \
    own.known.size = sizeof own;                                                            \
    assert_int_equal(descriptor_read(&d, &own, &old, sizeof own, #type), TN_OK);            \
    assert_memory_equal(&own, &old, first);                                                 \
    assert_int_equal(own.later, 7);                                                         \
    back.known.size = first;                                                                \
    assert_int_equal(descriptor_write(&d, &back, &own, sizeof own, #type), TN_OK);          \
    assert_memory_equal(&back, &old, first);                                                \
    assert_int_equal(back.later, 7);                                                        \
    old.size = first / 8 * 8 - 8;                                                           \
    assert_int_equal(descriptor_read(&d, &own, &old, sizeof own, #type), TN_ERR_ARGUMENT);  \
    check_text(d.text, #type ".size is");                                                   \
    diag_clear(&d);                                                                         \
    assert_int_equal(descriptor_write(&d, &old, &own, sizeof own, #type), TN_ERR_ARGUMENT); \
    check_text(d.text, #type ".size is");                                                   \
    assert_int_equal(descriptor_write(&d, NULL, &own, sizeof own, #type), TN_ERR_ARGUMENT); \
    check_text(d.text, "the place for the " #type " is NULL");                              \
  }

static void older_callers_are_served(void **state) {
  (void)state;
  TYPES(CHECK_OLDER)
}

/* Newer callers: their struct has one field more. */

#define CHECK_NEWER(type, init, first)                                                       \
  {                                                                                          \
    struct {                                                                                 \
      type known;                                                                            \
      int64_t later;                                                                         \
    } given = {init, 0};                                                                     \
    type own = init;                                                                         \
    diag d = {0};                                                                            \
    given.known.size = sizeof given;                                                         \
    memset((char *)&given + sizeof(size_t), 3, first - sizeof(size_t));                      \
    assert_int_equal(descriptor_read(&d, &own, &given, sizeof own, #type), TN_OK);           \
    assert_memory_equal(&own, &given, first);                                                \
    given.later = 1;                                                                         \
    memset(&own, 0, sizeof own);                                                             \
    assert_int_equal(descriptor_read(&d, &own, &given, sizeof own, #type), TN_ERR_ARGUMENT); \
    check_text(d.text, #type " has a field that this library does not know");                \
    assert_memory_equal(&own, &given, first);                                                \
    memset(&given.known, 0, sizeof given.known);                                             \
    given.known.size = sizeof given;                                                         \
    assert_int_equal(descriptor_write(&d, &given, &own, sizeof own, #type), TN_OK);          \
    assert_int_equal(given.known.size, sizeof given);                                        \
    assert_memory_equal(&given, &own, first);                                                \
    assert_int_equal(given.later, 0);                                                        \
  }

static void newer_callers_are_served(void **state) {
  (void)state;
  TYPES(CHECK_NEWER)
}

static void none_is_init(void **state) {
  (void)state;
  tn_plan_desc own = TN_PLAN_DESC_INIT;
  diag d = {0};
  assert_int_equal(descriptor_read(&d, &own, NULL, sizeof own, "tn_plan_desc"), TN_OK);
  assert_int_equal(own.size, sizeof own);
}

static void descriptions_fit_newer_structs(void **state) {
  (void)state;
  tn_context *c = tn_open(NULL);
  struct {
    tn_device_info known;
    uint64_t more;
  } info = {TN_DEVICE_INFO_INIT, 9};
  info.known.size = sizeof info;
  check_ok(c, tn_device_get(c, 0, &info.known));
  check_text(info.known.name, "CPU");
  assert_int_equal(info.known.size, sizeof info);
  assert_int_equal(info.more, 0);
  info.known.size = 8;
  assert_int_equal(tn_device_get(c, 0, &info.known), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "tn_device_info.size is 8");
  check_ok(c, tn_close(c));
}

/* Payloads of refused descriptors. */

static void count_destroyed(void *user) { ++*(int *)user; }
static void ignore_line(void *user, tn_log_level level, const char *text) {
  (void)user, (void)level, (void)text;
}

static void refused_payloads_are_destroyed_once(void **state) {
  (void)state;
  counting memory = {0};
  int logger = 0;
  struct {
    tn_open_desc known;
    int64_t later;
  } d = {TN_OPEN_DESC_INIT, 1};
  d.known.size = sizeof d;
  d.known.allocator = (tn_allocator){counting_alloc, counting_release, &memory, counting_destroy};
  d.known.logger = (tn_logger){ignore_line, &logger, count_destroyed};
  tn_context *c = tn_open(&d.known);
  check_text(tn_message(c), "does not know");
  check_ok(c, tn_close(c));
  assert_int_equal(logger, 1);
  assert_int_equal(memory.destroyed, 1);
  assert_int_equal(memory.out, 0);
}

static tn_status run_nothing(void *user, tn_call *call) {
  (void)user, (void)call;
  return TN_OK;
}

static void refused_operations_are_destroyed_once(void **state) {
  (void)state;
  tn_context *c = tn_open(NULL);
  int destroyed = 0;
  struct {
    tn_custom_desc known;
    int64_t later;
  } d = {TN_CUSTOM_DESC_INIT, 1};
  d.known.size = sizeof d;
  d.known.run = run_nothing;
  d.known.user = &destroyed;
  d.known.destroy = count_destroyed;
  tn_type type = {TN_F32, TN_SCALAR};
  tn_tensor *out;
  tn_custom(c, &d.known, NULL, 0, &type, &out, 1);
  assert_int_equal(tn_type_of(out).dtype, TN_UNDEFINED);
  check_text(tn_message(c), "does not know");
  assert_int_equal(destroyed, 1);
  d.later = 0;
  tn_custom(NULL, &d.known, NULL, 0, &type, &out, 1);
  assert_int_equal(destroyed, 2);
  tn_custom(c, &d.known, NULL, 0, &type, &out, 1);
  assert_int_equal(tn_type_of(out).dtype, TN_F32);
  assert_int_equal(destroyed, 2);
  check_ok(c, tn_close(c));
  assert_int_equal(destroyed, 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(older_callers_are_served),
      cmocka_unit_test(newer_callers_are_served),
      cmocka_unit_test(none_is_init),
      cmocka_unit_test(descriptions_fit_newer_structs),
      cmocka_unit_test(refused_payloads_are_destroyed_once),
      cmocka_unit_test(refused_operations_are_destroyed_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
