#include "sim/app/page_output.h"

#include <nlohmann/json.hpp>

#include "sim/app/command_line.h"
#include "sim/app/output_files.h"
#include "sim/app/version.h"
#include "sim/report/page/page.h"

namespace ridgeline::app {

std::string page_text(const std::string& title, nlohmann::ordered_json parts, const nlohmann::ordered_json& more) {
  nlohmann::ordered_json data{{"generator", kProgramAndVersion}, {"title", title}, {"parts", std::move(parts)}};
  if (!command_line().empty()) data["command"] = command_line();
  if (more.is_object()) data.update(more);
  return page(data);
}

void write_page(const std::string& path, const std::string& title, nlohmann::ordered_json parts,
                const nlohmann::ordered_json& more) {
  write_answer(path, page_text(title, std::move(parts), more));
}

}  // namespace ridgeline::app
