// That a table is what the fit makes of the data, and that the check says so when it is not.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "fit/fit_class.h"
#include "tests/support/temporary_path.h"

namespace ridgeline::fit {
namespace {

/// Times of a law of three constants: start + bytes / rate, times (1 + extra) for odd cases.
Problem linear_problem(double change_of_one = 1.0) {
  Problem problem{.name = "kernels"};
  std::mt19937_64 random(3);
  std::normal_distribution<double> noise(0.0, 0.03);
  for (int i = 0; i < 200; ++i) {
    const double bytes = std::exp(0.06 * i), time = (2.0 + bytes / 50.0) * (i % 2 == 1 ? 1.2 : 1.0);
    const auto id = static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15ull;
    problem.cases.push_back(
        {time * std::exp(noise(random)) * (i % 3 == 1 ? 1.01 : 1.0), i % 3 == 1 ? 1 : 0, i % 7 == 0, id, id});
  }
  problem.cases[1].seconds *= change_of_one;
  problem.cases[1].row += change_of_one != 1.0 ? 1 : 0;
  problem.predict = [](const Values& values, std::span<const std::size_t> which, std::span<double> seconds) {
    for (std::size_t k = 0; k < which.size(); ++k) {
      const auto i = static_cast<double>(which[k]);
      seconds[k] = (values.at("start") + std::exp(0.06 * i) / values.at("rate")) *
                   (which[k] % 2 == 1 ? 1.0 + values.at("extra") : 1.0) * values.at("one");
    }
  };
  return problem;
}

struct Fit {
  LawTable table{.name = "table", .type = "Law", .header = "law.h"};
  Priors priors{.scale = 0.05, .machine_spread = 0.02};
  std::vector<std::string> machines{"first", "second"};

  Fit() {
    LawClass one{.name = "kernels"};
    for (const auto& [name, value] : {std::pair{"start", 1.0}, {"rate", 80.0}, {"extra", 0.1}, {"one", 1.0}})
      one.constants.push_back({.name = name, .value = value, .text = constant_text(value)});
    table.classes.push_back(one);
    ClassPriors known;
    known.fitted = {
        {"start", {0.1, 10.0, 2.0, 3.0}}, {"rate", {1.0, 1000.0, 50.0, 3.0}}, {"extra", {0.0, 1.0, 0.1, 0.5}}};
    known.frozen = {{"one", 1.0}};
    priors.classes.emplace_back("kernels", known);
    fit_class(table, table.classes[0], priors, priors.classes[0].second, linear_problem(), machines, {});
  }
  [[nodiscard]] std::vector<std::string> check(const Problem& problem) const {
    return check_class(table, table.classes[0], priors, priors.classes[0].second, problem, machines);
  }
  LawConstant& constant(const std::string& name) {
    for (LawConstant& one : table.classes[0].constants)
      if (one.name == name) return one;
    throw std::logic_error(name);
  }
  void edit(const std::string& name, double factor) {
    LawConstant& one = constant(name);
    one.value *= factor;
    one.text = constant_text(one.value);
    table.classes[0].numbers = table.classes[0].hash();  // as one who hides it would
  }
};

TEST(RefitCheck, passes_what_the_fit_makes) {
  const Fit fit;
  EXPECT_EQ(fit.check(linear_problem()), std::vector<std::string>{});
  const LawClass& one = fit.table.classes[0];
  EXPECT_NEAR(one.values().at("start"), 2.0, 0.06);
  EXPECT_NEAR(one.values().at("rate"), 50.0, 1.5);
  EXPECT_NEAR(one.values().at("extra"), 0.2, 0.03);
  EXPECT_NEAR(one.fit->machines.at("second"), 1.0, 1.2);
  EXPECT_LT(one.fit->held_out.median, 3.0);
  EXPECT_EQ(one.fit->held_out.kernels, 29u);
}

TEST(RefitCheck, fails_where_a_fitted_number_was_changed) {
  for (const char* name : {"start", "rate", "extra"})
    for (const double factor : {0.97, 1.03}) {
      Fit fit;
      fit.edit(name, name == std::string("extra") ? 1.0 + 5.0 * (factor - 1.0) : factor);
      EXPECT_FALSE(fit.check(linear_problem()).empty()) << name << " times " << factor;
    }
}

TEST(RefitCheck, fails_where_a_frozen_number_was_changed) {
  Fit fit;
  fit.edit("one", 1.01);
  EXPECT_FALSE(fit.check(linear_problem()).empty());
}

TEST(RefitCheck, fails_where_a_digit_was_changed_without_the_hash) {
  Fit fit;
  fit.constant("rate").text += "0";
  EXPECT_FALSE(fit.check(linear_problem()).empty());
}

TEST(RefitCheck, fails_where_the_data_changed) {
  const Fit fit;
  EXPECT_FALSE(fit.check(linear_problem(1.02)).empty());
}

TEST(LawTables, are_read_as_they_were_written) {
  Fit fit;
  fit.table.classes[0].about = "Some words about these kernels, long enough to be broken into more than one line: " +
                               std::string("words and more words that say where the numbers come from.");
  const auto path = temporary_path("table.yaml");
  write_table(fit.table, path);
  const LawTable read = read_table(path);
  const auto again = temporary_path("again.yaml");
  write_table(read, again);
  const auto text = [](const auto& file) {
    std::stringstream all;
    all << std::ifstream(file).rdbuf();
    return all.str();
  };
  EXPECT_EQ(text(path), text(again));
  EXPECT_EQ(read.classes[0].about, fit.table.classes[0].about);
  EXPECT_EQ(
      check_class(read, read.classes[0], fit.priors, fit.priors.classes[0].second, linear_problem(), fit.machines),
      std::vector<std::string>{});
  std::filesystem::remove(path);
  std::filesystem::remove(again);
}

}  // namespace
}  // namespace ridgeline::fit
