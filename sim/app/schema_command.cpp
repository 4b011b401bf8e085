// ridgeline schema: what files may say and what commands print, as JSON Schema; the table of all keys.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/app/commands.h"
#include "sim/output/standard_output.h"
#include "sim/report/schema/schema_json.h"

namespace ridgeline::app {
namespace {

struct SchemaOptions {
  std::string name;
  bool keys = false, names = false, tools = false;
};

void run(const SchemaOptions& options) {
  const std::vector<InputDocument> documents = input_documents();
  if (options.keys) {
    print("{}", keys_markdown(documents));
  } else if (options.tools) {
    print("{}", tools_markdown());
  } else if (options.names) {
    for (const std::string& name : schema_names(documents)) print("{}\n", name);
  } else {
    print("{}\n", schema_json(documents, options.name).dump(1));
  }
}

}  // namespace

void add_schema_command(CLI::App& program, Outcome&) {
  auto options = std::make_shared<SchemaOptions>();
  auto* command = program.add_subcommand("schema", "JSON Schema of the files it reads and the JSON it prints");
  command->add_option("name", options->name, "kind of file or output that a document is checked against (--names)");
  command->add_flag("--names", options->names, "the kinds, a line each");
  command->add_flag("--keys", options->keys, "every key of every file with its meaning (docs/keys.md)");
  command->add_flag("--tools", options->tools, "keys of other tools' training configurations (docs/tools.md)");
  command->callback([options] { run(*options); });
}

}  // namespace ridgeline::app
