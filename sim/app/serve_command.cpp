// ridgeline serve: the lab in the browser, and its JSON interface.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "sim/app/commands.h"
#include "sim/app/version.h"
#include "sim/config/data_folder.h"
#include "sim/output/standard_output.h"
#include "sim/output/terminal.h"
#include "sim/serve/server.h"
#include "sim/units/budget.h"
#include "sim/units/readable_files.h"
#include "sim/units/user_error.h"

namespace ridgeline::app {
namespace {

constexpr std::chrono::milliseconds kTimeToEnd{1500};

struct ServeOptions {
  std::string host, token;
  std::uint16_t port = 8137;
  int connections = 128, time = 600;
  std::vector<std::string> folders;
};

std::vector<std::filesystem::path> folders_of(const ServeOptions& options) {
  std::vector<std::filesystem::path> folders{config::data_folder("hw").parent_path()};
  for (const std::string& folder : options.folders) {
    std::error_code error;
    if (!std::filesystem::is_directory(folder, error))
      throw UserError(fmt::format("--folder: {} is no folder", folder));
    folders.emplace_back(folder);
  }
  return folders;
}

void run(const ServeOptions& options) {
  serve::ServerOptions listening{.port = options.port, .connections = options.connections};
  if (!options.host.empty()) listening.host = options.host;
  serve::ApiOptions answering{
      .tool = tool_and_revision(), .memory = memory_budget() / 2, .process_memory = memory_budget()};
  answering.time_of_study = std::chrono::seconds(options.time);
  answering.time_of_answer = std::chrono::seconds(std::max(1, options.time / 10));
  answering.guard = {listening.host, options.token};
  if (answering.guard.token.empty() && !serve::is_loopback(listening.host)) answering.guard.token = serve::new_token();
  read_only_below(folders_of(options));
  serve::Api api(answering);
  serve::Server server(api, listening);
  const std::string& token = answering.guard.token;
  const std::string name = listening.host.find(':') == std::string::npos ? listening.host : "[" + listening.host + "]";
  print("http://{}:{}/{}\n", name, server.port(), token.empty() ? "" : "#token=" + token);
  finish_output();
  server.run();
  // What is being answered has been told to stop; an answer that does not hear it ends with the program.
  std::thread([] {
    std::this_thread::sleep_for(kTimeToEnd);
    std::_Exit(0);
  }).detach();
}

}  // namespace

void add_serve_command(CLI::App& program, Outcome&) {
  auto options = std::make_shared<ServeOptions>();
  auto* command = program.add_subcommand("serve", "the lab in the browser, and its JSON interface");
  command->add_option("--port", options->port, "to listen on; 0 takes a free one (default: 8137)");
  command->add_option("--host", options->host,
                      "address to listen on (default: this machine alone); for another a token is needed");
  command->add_option("--token", options->token,
                      "to be sent with each question (Authorization: Bearer); made and printed where --host needs one");
  command->add_option("--folder", options->folders, "questions may name files below it; none without")
      ->allow_extra_args(false)
      ->take_all();
  command->add_option("--connections", options->connections, "at once, at most (default: 128)")
      ->check(CLI::Range(1, 4096));
  command
      ->add_option("--time", options->time,
                   "seconds for a study at most, a tenth of them for a prediction (default: 600)")
      ->check(CLI::Range(1, 1 << 20));
  command->callback([options] { run(*options); });
}

}  // namespace ridgeline::app
