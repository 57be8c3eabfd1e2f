/* tenon version: what this is. */
#include "cli/command.h"
#include "cli/text.h"
#include "device/cpu/cc.h"

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

/** Names of the kinds of devices, each once. */
static json_t *backends(command *c) {
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
  cc compiler;
  command_open(c, NULL, 0);
  command_check_open(c);
  bool found = cc_find(&compiler, command_compiler(), &c->arena, &c->diag) == TN_OK;
  const char *library = number_text(c, tn_version());
  json_t *list = backends(c);
  if (o->json) {
    text_json_print(&c->arena, json_pack("{s:s, s:s, s:o, s:o}", "version",
                                         number_text(c, TN_VERSION), "library", library, "compiler",
                                         text_json(&c->arena, found ? compiler.version : NULL),
                                         "backends", list));
    return EXIT_DONE;
  }
  printf("tenon %s\nlibrary   %s\ncompiler  %s\nbackends ", number_text(c, TN_VERSION), library,
         found ? text_safe(&c->arena, compiler.version) : "none was found");
  for (size_t i = 0; i < json_array_size(list); i++)
    printf(" %s", json_string_value(json_array_get(list, i)));
  putchar('\n');
  json_decref(list);
  return EXIT_DONE;
}

const verb verb_version = {
    .name = "version",
    .summary = "Tells the version of the command, the library and the compiler",
    .about = "--json: version (of the command), library, compiler (null: none), backends.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .options_bytes = sizeof(version_options),
    .act = act,
};
