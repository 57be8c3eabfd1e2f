/* Implements `tenon version`, which prints the versions of the command, the library, its build and
   the compiler. */
#include "cli/core/command.h"
#include "cli/core/text_format.h"
#include "cli/verbs/verb_table.h"

#include <stdio.h>
#include <string.h>

typedef struct version_options {
  bool json;
} version_options;

static const option options[] = {
    {"json", OPTION_FLAG, offsetof(version_options, json), NULL, "print JSON", 0, 0, 0},
};

static const char *number_text(command *c, int32_t v) {
  return arena_printf(&c->arena, "%d.%d.%d", (int)(v / 10000), (int)(v / 100 % 100),
                      (int)(v % 100));
}

/** Lists the names of the backends that have devices. */
static json_t *list_backends(command *c) {
  json_t *list = json_array();
  tn_device_info info = TN_DEVICE_INFO_INIT;
  const char *last = "";
  for (size_t i = 0; tn_device_get(c->context, i, &info) == TN_OK; i++) {
    const char *name = arena_printf(&c->arena, "%.*s", (int)strcspn(info.name, ":"), info.name);
    if (strcmp(name, last)) json_array_append_new(list, json_string(name));
    last = name;
  }
  return list;
}

static int act(command *c) {
  const version_options *o = c->options;
  tn_compiler_info compiler = TN_COMPILER_INFO_INIT;
  command_open_context(c, NULL, -1, NULL);
  command_check_context(c);
  bool found = tn_compiler_get(c->context, 0, &compiler) == TN_OK && compiler.used;
  const char *library = number_text(c, tn_version());
  json_t *list = list_backends(c);
  if (o->json) {
    text_json_print(&c->arena,
                    json_pack("{s:s, s:s, s:s, s:o, s:o}", "version", number_text(c, TN_VERSION),
                              "library", library, "build", tn_build_id(), "compiler",
                              text_json(&c->arena, found ? compiler.version : NULL), "backends",
                              list));
    return EXIT_DONE;
  }
  printf("tenon %s\nlibrary   %s\nbuild     %s\ncompiler  %s\nbackends ",
         number_text(c, TN_VERSION), library, tn_build_id(),
         found ? text_escape(&c->arena, compiler.version) : "none found");
  for (size_t i = 0; i < json_array_size(list); i++)
    printf(" %s", json_string_value(json_array_get(list, i)));
  putchar('\n');
  json_decref(list);
  return EXIT_DONE;
}

const verb verb_version = {
    .name = "version",
    .summary = "Print the versions of the command, the library and the compiler",
    .examples = "tenon version --json",
    .about =
        "build: the library's version and a digest of its sources. An exported cache is imported\n"
        "by the same build alone.\n\n"
        "--json: version (of the command), library, build, compiler (null if none), backends.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .options_bytes = sizeof(version_options),
    .act = act,
};
