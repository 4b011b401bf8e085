#include "sim/app/page_output.h"

#include <nlohmann/json.hpp>

#include "sim/app/version.h"
#include "sim/output/write_file.h"
#include "sim/report/page.h"
#include "sim/report/page_data.h"
#include "sim/scenario/step_detail.h"

namespace ridgeline::app {

nlohmann::ordered_json page_part_of(const std::string& title, const Scenario& scenario, const Prediction& prediction) {
  return page_part(title, prediction, step_detail(scenario, prediction.engine), scenario.gpu);
}

void write_page(const std::string& path, const std::string& title, nlohmann::ordered_json parts,
                const nlohmann::ordered_json& more) {
  nlohmann::ordered_json data{{"generator", kProgramAndVersion}, {"title", title}, {"parts", std::move(parts)}};
  if (more.is_object()) data.update(more);
  write_file(path, page(data));
}

}  // namespace ridgeline::app
