// The API without a network.
#include "sim/serve/api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/answer/full_prediction.h"
#include "sim/config/data_folder.h"
#include "sim/report/answer_report.h"
#include "sim/units/readable_files.h"

namespace ridgeline::serve {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kScenario = R"({"hardware": "nvidia-t4", "model": "bert-base",
  "training": {"micro_batch": 2, "sequence_length": 128, "precision": "fp32"}})";

class ServedApi : public testing::Test {
 protected:
  static void SetUpTestSuite() { read_only_below({config::data_folder("hw").parent_path()}); }
  static void TearDownTestSuite() { read_only_below({}); }

  Reply ask(const std::string& method, const std::string& target, const std::string& body = "") {
    Request request{.method = method, .target = target, .body = body};
    request.host = "localhost:8137";
    return api_.answer(request);
  }
  json answer(const std::string& target, const std::string& body) {
    const Reply reply = ask("POST", target, body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return json::parse(reply.body);
  }
  json mistake(const std::string& target, const std::string& body, int status = 400) {
    const Reply reply = ask("POST", target, body);
    EXPECT_EQ(reply.status, status) << reply.body;
    return json::parse(reply.body).at("error");
  }
  Api api_{{.tool = "ridgeline test", .most_sweep_points = 10}};
};

TEST_F(ServedApi, a_prediction_is_the_one_of_the_command) {
  const json served = answer("/api/predict?advice=1", kScenario);
  Session session;
  ScenarioSource source;
  source.text = kScenario;
  const StepRun run(session, load_scenario(source), "analytic");
  const json own = answer_json(run, full_prediction(run, {.advice = true}), {}, "ridgeline test");
  EXPECT_EQ(served, own);
}

TEST_F(ServedApi, yaml_and_json_and_changes_ask_the_same) {
  const char* yaml =
      "hardware: nvidia-t4\nmodel: bert-base\ntraining: {micro_batch: 4, sequence_length: 128, precision: fp32}\n";
  const json a = answer("/api/predict", yaml), b = answer("/api/predict?set=training.micro_batch%3D4", kScenario);
  EXPECT_EQ(a.at("step"), b.at("step"));
  const json c = answer(
      "/api/predict?set=hardware%3Dnvidia-t4&set=model%3Dbert-base&set=training.micro_batch%3D4&"
      "set=training.sequence_length%3D128&set=training.precision%3Dfp32",
      "");
  EXPECT_EQ(a.at("step"), c.at("step"));
}

TEST_F(ServedApi, pieces_for_pictures_are_there_where_they_are_asked_for) {
  const json plain = answer("/api/predict", kScenario);
  EXPECT_FALSE(plain.contains("page"));
  const json shown = answer("/api/predict?show=groups,spans,memory&kernel=0", kScenario);
  EXPECT_EQ(shown.at("page").at("spans").at("start_us").size(), shown.at("step").at("kernel_count"));
  EXPECT_EQ(shown.at("kernel").at("name"), shown.at("page").at("groups").at(0).at("name"));
  EXPECT_FALSE(answer("/api/predict?show=groups", kScenario).at("page").contains("spans"));
  EXPECT_THAT(std::string(mistake("/api/predict?show=everything", kScenario).at("message")),
              HasSubstr("groups, spans"));
  EXPECT_THAT(std::string(mistake("/api/predict?kernel=100000", kScenario).at("message")), HasSubstr("kernels 0 to"));
}

TEST_F(ServedApi, the_longest_kernel_is_the_one_with_most_time) {
  const json shown = answer("/api/predict?show=groups&kernel=longest", kScenario);
  double most = 0.0;
  for (const json& group : shown.at("page").at("groups")) most = std::max(most, group.at("time_s").get<double>());
  EXPECT_EQ(shown.at("page").at("groups")[shown.at("kernel").at("group").get<std::size_t>()].at("time_s"), most);
}

TEST_F(ServedApi, a_kernel_from_the_inside_adds_up) {
  const json page = answer("/api/predict?show=groups", kScenario).at("page");
  for (std::size_t i = 0; i < page.at("groups").size(); i += 7) {
    const json kernel = answer("/api/predict?kernel=" + std::to_string(i), kScenario).at("kernel");
    const json& grid = kernel.at("grid");
    EXPECT_EQ(kernel.at("blocks").get<double>(), grid[0].get<double>() * grid[1].get<double>() * grid[2].get<double>());
    const json& held = kernel.at("occupancy");
    EXPECT_EQ(held.at("warps_per_sm"), held.at("blocks_per_sm").get<int>() * held.at("warps_per_block").get<int>());
    for (const json& term : kernel.at("terms"))
      EXPECT_DOUBLE_EQ(term.at("time_s").get<double>(),
                       term.at("amount").get<double>() / term.at("rate").get<double>());
  }
}

TEST_F(ServedApi, keys_that_are_left_out_change_nothing_else) {
  json whole = answer("/api/predict?show=groups", kScenario);
  const json less = answer("/api/predict?show=groups&leave_out=kernels,modules", kScenario);
  EXPECT_EQ(whole.erase("kernels") + whole.erase("modules"), 2u);
  EXPECT_EQ(less, whole);
  EXPECT_THAT(std::string(mistake("/api/predict?leave_out=step", kScenario).at("message")),
              HasSubstr("expected kernels"));
}

TEST_F(ServedApi, sensitivity_without_its_keys_is_that_of_the_resources) {
  json whole = answer("/api/predict?sensitivity=1", kScenario);
  const json less = answer("/api/predict?sensitivity=1&leave_out=sensitivity_keys", kScenario);
  EXPECT_GT(whole.at("sensitivity").at("keys").size(), 40u);
  whole.at("sensitivity").erase("keys");
  EXPECT_EQ(less, whole);
}

TEST_F(ServedApi, groups_have_their_bytes_at_each_level) {
  const json page = answer("/api/predict?show=groups", kScenario).at("page");
  for (const char* rate : {"dram_bytes_per_s", "l2_bytes_per_s", "shared_bytes_per_s"})
    EXPECT_GT(page.at("device").at(rate).get<double>(), 1e11) << rate;
  EXPECT_GT(page.at("device").at("shared_bytes_per_s").get<double>(),
            page.at("device").at("l2_bytes_per_s").get<double>());
  for (const json& group : page.at("groups"))
    EXPECT_GE(group.at("loaded_bytes").get<double>(), group.at("l2_bytes").get<double>()) << group;
}

TEST_F(ServedApi, each_rank_of_a_pipeline_has_a_lane_of_passes) {
  const json said = answer("/api/predict?show=spans", R"({"cluster": "h200-x4", "model": "gpt2", "training": {
    "micro_batch": 2, "sequence_length": 256, "precision": "amp-bf16", "gradient_accumulation": 4, "parallel": {"pipeline": 4}}})");
  const json& lanes = said.at("page").at("lanes");
  ASSERT_EQ(lanes.size(), 4u);
  for (std::size_t rank = 0; rank < lanes.size(); ++rank) {
    const json& lane = lanes[rank];
    EXPECT_EQ(lane.at("rank"), rank);
    ASSERT_EQ(lane.at("pass").size(), 8u);  // four forward, four backward
    EXPECT_EQ(std::count(lane.at("forward").begin(), lane.at("forward").end(), json(true)), 4);
    EXPECT_THAT(lane.at("pass")[0].get<std::string>(), HasSubstr(std::to_string(rank) + "F"));
    for (std::size_t i = 0; i < 8; ++i)
      EXPECT_LT(lane.at("start_us")[i].get<double>(), lane.at("end_us")[i].get<double>());
  }
  EXPECT_FALSE(answer("/api/predict?show=spans", kScenario).at("page").contains("lanes"));
}

TEST_F(ServedApi, blocks_are_those_of_the_prediction) {
  const json said = answer("/api/predict?show=blocks", kScenario);
  const json& page = said.at("page").at("blocks");
  const auto alive = [&](const json& rows, std::int64_t moment) {
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < rows.at("bytes").size(); ++i)
      if (rows.at("from")[i] <= moment && (rows.at("to")[i].is_null() || moment < rows.at("to")[i]))
        bytes += rows.at("bytes")[i].get<std::int64_t>();
    return bytes;
  };
  const std::int64_t peak = page.at("peak").at("moment");
  EXPECT_EQ(alive(page.at("blocks"), peak), said.at("memory").at("peak_allocated_bytes"));
  EXPECT_EQ(alive(page.at("segments"), peak), page.at("peak").at("reserved_bytes"));
  EXPECT_FALSE(page.contains("failure"));
  const json none = answer("/api/predict?show=blocks&set=training.micro_batch%3D4096", kScenario);
  const json& failure = none.at("page").at("blocks").at("failure");
  EXPECT_EQ(failure.at("missing_bytes"), none.at("memory").at("out_of_memory").at("missing_bytes"));
  EXPECT_LE(failure.at("largest_free_bytes").get<double>(), failure.at("free_bytes").get<double>());
  EXPECT_LT(failure.at("largest_free_bytes").get<double>(), failure.at("requested_bytes").get<double>());
}

TEST_F(ServedApi, the_power_of_the_kernels_adds_up_to_the_energy_of_the_step) {
  const json said = answer("/api/predict?show=spans,power", kScenario);
  const json &power = said.at("page").at("power"), &spans = said.at("page").at("spans");
  double beyond = 0.0, classes = 0.0;
  for (std::size_t i = 0; i < spans.at("duration_us").size(); ++i)
    beyond += (power.at("power_w")[i].get<double>() - power.at("idle_w").get<double>()) * 1e-6 *
              spans.at("duration_us")[i].get<double>();
  for (const auto& [name, energy] : power.at("energy_by_class_j").items()) classes += energy.get<double>();
  const double step = said.at("step").at("energy_j");
  EXPECT_NEAR(classes, power.at("energy_j").get<double>(), 1e-9 * step);
  EXPECT_NEAR(power.at("energy_j").get<double>(), step, 1e-4 * step);
  EXPECT_NEAR(beyond, step - power.at("energy_by_class_j").at("idle").get<double>(), 2e-3 * step);
}

TEST_F(ServedApi, of_a_pipeline_the_power_is_that_of_the_rank_that_is_shown) {
  const json said = answer("/api/predict?show=power", R"({"cluster": "h200-x4", "model": "gpt2", "training": {
    "micro_batch": 1, "sequence_length": 128, "precision": "amp-bf16", "gradient_accumulation": 4,
    "parallel": {"pipeline": 4}}})");
  const double step = said.at("step").at("energy_j");
  EXPECT_NEAR(said.at("page").at("power").at("energy_j").get<double>(), step, 1e-4 * step);
}

TEST_F(ServedApi, operands_add_up_to_the_traffic_of_their_kernel) {
  const json page = answer("/api/predict?show=groups,caches", kScenario).at("page");
  EXPECT_EQ(page.at("caches").at("l2_bytes").size(), page.at("groups").size());
  for (std::size_t i = 0; i < page.at("groups").size(); i += 9) {
    const json kernel = answer("/api/predict?show=caches&kernel=" + std::to_string(i), kScenario).at("kernel");
    const json& caches = kernel.at("caches");
    double read = 0.0, written = 0.0;
    for (const json& operand : caches.at("operands")) {
      (operand.at("written").get<bool>() ? written : read) += operand.at("dram_bytes").get<double>();
      EXPECT_GE(operand.at("loaded_bytes").get<double>(), operand.at("l2_bytes").get<double>());
      EXPECT_GE(operand.at("l2_hit_share").get<double>(), 0.0);
      EXPECT_GE(operand.at("resident").get<double>(), 0.0);
      EXPECT_LE(operand.at("resident").get<double>(), 1.0);
    }
    const auto near = [&](double sum, const char* key) {
      const double said = kernel.at("traffic").at(key);
      if (sum > 0.0) {
        EXPECT_NEAR(sum, said, 1e-9 * said + 1.0) << kernel.at("name");
      }
    };
    near(read, "dram_read_bytes");
    near(written, "dram_write_bytes");
    EXPECT_LE(caches.at("held_after_bytes").get<double>(), 1.01 * caches.at("l2_capacity_bytes").get<double>());
  }
}

TEST_F(ServedApi, mistakes_say_file_key_and_message) {
  const json wrong =
      mistake("/api/predict", R"({"hardware": "nvidia-t4", "model": "bert-base", "training": {"micro_batch": 0}})");
  EXPECT_EQ(wrong.at("file"), "scenario");
  EXPECT_EQ(wrong.at("key"), "training.micro_batch");
  EXPECT_EQ(wrong.at("line"), 1);
  EXPECT_THAT(std::string(mistake("/api/predict?engine=magic", kScenario).at("message")), HasSubstr("magic"));
  EXPECT_THAT(std::string(mistake("/api/predict?engin=analytic", kScenario).at("message")),
              HasSubstr("did you mean engine?"));
  EXPECT_THAT(std::string(mistake("/api/predict?set=oops", kScenario).at("message")), HasSubstr("KEY=VALUE"));
  EXPECT_THAT(std::string(mistake("/api/predict", "{").at("message")), HasSubstr("scenario"));
  EXPECT_EQ(mistake("/api/predikt", kScenario, 405).count("message"), 1u);
  EXPECT_EQ(ask("GET", "/api/predict").status, 405);
  const Reply nowhere = ask("GET", "/api/modles");
  EXPECT_EQ(nowhere.status, 404);
  EXPECT_THAT(nowhere.body, HasSubstr("did you mean /api/models?"));
}

TEST_F(ServedApi, files_outside_of_its_folders_are_not_opened) {
  const std::vector<std::string> bodies{R"({"hardware": "/etc/passwd", "model": "bert-base"})",
                                        R"({"hardware": "nvidia-t4", "model": "../../../../../../../../etc/passwd"})",
                                        R"({"hardware": "nvidia-t4", "model": "/etc/hostname.yaml"})",
                                        R"({"hardware": "nvidia-t4", "trace": "/etc/passwd"})",
                                        R"({"hardware": "nvidia-t4", "model": "bert-base", "host": "/etc/passwd"})",
                                        R"({"hardware": "nvidia-t4", "model": "bert-base", "software": "/etc/x.yaml"})",
                                        R"({"cluster": "/etc/x.yaml", "model": "bert-base"})"};
  for (const std::string& body : bodies)
    EXPECT_THAT(std::string(mistake("/api/predict", body).at("message")), HasSubstr("--folder")) << body;
  for (const char* target : {"/api/hardware//etc/passwd", "/api/models//etc/x.yaml", "/api/memory?file=/etc/passwd",
                             "/api/scenarios/../../../../etc/x"}) {
    const Reply reply = ask("GET", target);
    EXPECT_EQ(reply.status, 400) << target;
    EXPECT_THAT(reply.body, HasSubstr("--folder")) << target;
  }
  EXPECT_THAT(
      std::string(
          mistake("/api/sweep", R"({"scenario": "/etc/passwd", "axes": {"training.micro_batch": [1]}})").at("message")),
      HasSubstr("--folder"));
}

TEST_F(ServedApi, studies_answer_and_are_bounded) {
  const std::string side = std::string(R"({"scenario": )") + kScenario + "}";
  const json compared = answer("/api/compare", R"({"sides": [)" + side + R"(, {"label": "B", "scenario": )" +
                                                   kScenario + R"(, "set": ["hardware.dram.bandwidth=640 GB/s"]}]})");
  EXPECT_EQ(compared.at("scenarios").size(), 2u);
  EXPECT_LT(compared.at("differences").at(0).at("time_s").get<double>(), 0.0);
  mistake("/api/compare", "{\"sides\": [" + side + "]}");
  mistake("/api/compare", "[]");
  mistake("/api/compare", "{\"sides\": 3}");
  mistake("/api/compare", std::string(100000, '['));
  EXPECT_TRUE(answer("/api/fit", kScenario).at("fits"));
  const std::string grid =
      std::string(R"({"scenario": )") + kScenario + R"(, "axes": {"training.micro_batch": [1, 2, 4]}})";
  EXPECT_EQ(answer("/api/sweep", grid).at("points").size(), 3u);
  const std::string large = std::string(R"({"scenario": )") + kScenario +
                            R"(, "axes": {"training.micro_batch": {"range": [1, 4000], "step": 1}}})";
  EXPECT_THAT(std::string(mistake("/api/sweep", large).at("message")), HasSubstr("a server takes 10"));
  EXPECT_THAT(std::string(mistake("/api/plan?gpus=2&sequences=8", kScenario).at("message")),
              HasSubstr("a server takes 10"));
  EXPECT_THAT(std::string(mistake("/api/plan", kScenario).at("message")), HasSubstr("on how many GPUs"));
  EXPECT_THAT(std::string(mistake("/api/plan?gpus=two", kScenario).at("message")), HasSubstr("expected numbers"));
}

TEST_F(ServedApi, a_stopped_sweep_is_given_up) {
  Request request{.method = "POST", .target = "/api/sweep"};
  request.host = "localhost";
  request.body =
      std::string(R"({"scenario": )") + kScenario + R"(, "axes": {"training.micro_batch": [1, 2, 3, 4, 5, 6, 7, 8]}})";
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(api_.answer(request, stop.get_token()).status, 409);
  std::uint64_t done = 0;
  EXPECT_EQ(api_.answer(request, {},
                        [&](std::uint64_t now, std::uint64_t total) {
                          EXPECT_EQ(total, 8u);
                          done = now;
                        })
                .status,
            200);
  EXPECT_EQ(done, 8u);
}

TEST_F(ServedApi, what_grows_beyond_its_budget_is_told_so) {
  ApiOptions options;
  options.memory = 1 << 20;
  Api small(options);
  Request request{.method = "POST", .target = "/api/plan?gpus=8&sequences=645120"};
  request.host = "localhost";
  request.body = R"({"hardware":"nvidia-a100-sxm4-80gb","model":"gpt2-xl","training":{"sequence_length":1024}})";
  const Reply reply = small.answer(request);
  EXPECT_EQ(reply.status, 422);
  EXPECT_THAT(reply.body, HasSubstr("takes more than 1.00 MiB of memory; RIDGELINE_MEMORY_BUDGET allows more"));
  options.memory = 0;
  options.time_of_study = std::chrono::seconds(1);
  Api hurried(options);
  const Reply late = hurried.answer(request);
  EXPECT_EQ(late.status, 422);
  // By the clock, or by the processors of all its threads together.
  EXPECT_THAT(late.body, ::testing::AnyOf(HasSubstr("takes longer than 1 s, the time of one question"),
                                          HasSubstr("takes more than 1 s of processors, the time of one question")));
}

TEST_F(ServedApi, questions_of_many_steps_have_a_lane_of_their_own) {
  const auto lane = [](const std::string& target) { return lane_of({.target = target}); };
  for (const char* target : {"/", "/lab.js", "/api/hosts", "/api/hardware/nvidia-t4", "/api/scenarios", "/nothing"})
    EXPECT_EQ(lane(target), Lane::shipped) << target;
  for (const char* target : {"/api/predict", "/api/predict?engine=analytic", "/api/kernels", "/api/exercises/3",
                             "/api/memory?file=a", "/api/microkernels"})
    EXPECT_EQ(lane(target), Lane::answers) << target;
  for (const char* target : {"/api/compare", "/api/fit?set=a", "/api/sweep", "/api/plan?gpus=8",
                             "/api/predict?engine=simulate", "/api/kernels?hardware=a&engine=simulate"})
    EXPECT_EQ(lane(target), Lane::studies) << target;
}

TEST_F(ServedApi, ways_to_run_what_does_not_fit_are_predictions_of_their_changes) {
  const std::string body =
      R"({"hardware": "nvidia-rtx-3090", "model": "gpt2-xl", "training": {"micro_batch": 4, "sequence_length": 512, "precision": "fp32"}})";
  const json large = answer("/api/predict?ladder=1&leave_out=kernels,modules", body);
  ASSERT_FALSE(large["memory"]["fits"].get<bool>());
  ASSERT_GE(large["ladder"].size(), 2u);
  bool one_fits = false;
  for (const json& row : large["ladder"]) {
    std::string target = "/api/predict?leave_out=kernels,modules";
    for (const json& one : row["changes"]) {
      std::string change = one.get<std::string>();
      target += "&set=" + change.replace(change.find('='), 1, "%3D");
    }
    const json own = answer(target, body);
    EXPECT_EQ(own["memory"]["fits"], row["fits"]) << target;
    EXPECT_EQ(row.contains("time_s"), row["runs"].get<bool>()) << target;
    if (row["runs"].get<bool>()) {
      EXPECT_DOUBLE_EQ(own["step"]["time_s"].get<double>(), row["time_s"].get<double>()) << target;
    }
    one_fits = one_fits || row["fits"].get<bool>();
  }
  EXPECT_TRUE(one_fits);
  EXPECT_TRUE(answer("/api/predict?ladder=1", kScenario)["ladder"].empty()) << "what runs needs no way";
  EXPECT_FALSE(answer("/api/predict", body).contains("ladder"));
}

TEST_F(ServedApi, of_one_clients_questions_the_newest_counts) {
  EXPECT_EQ(ask("POST", "/api/predict?client=a&sequence=2", kScenario).status, 200);
  EXPECT_EQ(ask("POST", "/api/predict?client=a&sequence=1", kScenario).status, 409);
  EXPECT_EQ(ask("POST", "/api/predict?client=b&sequence=1", kScenario).status, 200);
}

TEST_F(ServedApi, kernel_cases_are_answered_a_line_each) {
  const Reply reply = ask("POST", "/api/kernels?hardware=nvidia-t4",
                          "{\"op\":\"mm\",\"dtype\":\"fp32\",\"params\":{\"m\":512,\"n\":512,\"k\":512,\"layout\":"
                          "\"nt\"}}\n\n{\"op\":\"no\"}\n");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(std::count(reply.body.begin(), reply.body.end(), '\n'), 2);
  mistake("/api/kernels", "{}");
  mistake("/api/kernels?hardware=nvidia-t4", "\n");
}

TEST_F(ServedApi, tells_what_is_shipped) {
  for (const char* target :
       {"/api/hardware", "/api/hardware/nvidia-t4", "/api/clusters", "/api/models", "/api/models/gpt2", "/api/hosts",
        "/api/scenarios", "/api/scenarios/bert-large-fp32", "/api/software", "/api/schema/scenario", "/api/exercises",
        "/api/exercises/1", "/api/microkernels"}) {
    const Reply reply = ask("GET", target);
    EXPECT_EQ(reply.status, 200) << target << reply.body;
    EXPECT_FALSE(json::parse(reply.body).empty()) << target;
  }
  const json sheet = json::parse(ask("GET", "/api/hardware/nvidia-t4").body);
  EXPECT_FALSE(std::string(sheet.at("values").at("sm.count").at("source")).empty());
  const json solved = json::parse(ask("GET", "/api/exercises/1?solution=1").body);
  EXPECT_TRUE(solved.at("answer").is_number()) << solved;
  EXPECT_EQ(ask("GET", "/api/exercises/99").status, 400);
  EXPECT_EQ(ask("GET", "/api/exercises/x").status, 400);
}

TEST_F(ServedApi, strangers_are_refused_before_anything_is_read) {
  Request request{.method = "POST", .target = "/api/predict", .body = kScenario};
  request.host = "rebound.example:8137";
  EXPECT_EQ(api_.answer(request).status, 403);
  request.host = "localhost:8137";
  request.origin = "http://evil.example";
  EXPECT_EQ(api_.answer(request).status, 403);
  request.origin = "http://localhost:8137";
  EXPECT_EQ(api_.answer(request).status, 200);
}

}  // namespace
}  // namespace ridgeline::serve
