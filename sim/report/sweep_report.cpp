#include "sim/report/sweep_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>

#include "sim/output/terminal.h"
#include "sim/report/text/memory_words.h"
#include "sim/report/text/number_words.h"

namespace ridgeline {

using nlohmann::ordered_json;

namespace {

constexpr std::array kGoalNames{"none", "fastest", "cheapest", "pareto"};

std::vector<std::string> labels_of(const Sweep& sweep, const SweepPoint& point) {
  const std::vector<std::size_t> values = sweep.values_of(point.index);
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < values.size(); ++i) labels.push_back(sweep.axes[i].values[values[i]].label);
  return labels;
}

/// Last word of a key: "micro_batch".
std::string short_name(const std::string& key) {
  const auto dot = key.rfind('.');
  return dot == std::string::npos ? key : key.substr(dot + 1);
}

struct Column {
  Metric metric;
  std::string title;
};
const char* title_of(Metric metric) {
  switch (metric) {
    case Metric::step_time: return "step ms";
    case Metric::step_low: return "low ms";
    case Metric::step_high: return "high ms";
    case Metric::samples_per_s: return "samples/s";
    case Metric::tokens_per_s: return "tokens/s";
    case Metric::memory: return "GiB";
    case Metric::allocated: return "allocated GiB";
    case Metric::mfu: return "MFU %";
    case Metric::gpu_active: return "active %";
    case Metric::power: return "W";
    case Metric::energy: return "J";
    case Metric::energy_per_sample: return "J/sample";
    case Metric::price: return "$/h";
    case Metric::price_per_million: return "$/1e6";
    case Metric::ridge: return "ridge F/B";
  }
  return "";
}

bool ranks(const Sweep& sweep, Metric metric) {
  const std::vector<Metric> by = ranked_by(sweep);
  return std::find(by.begin(), by.end(), metric) != by.end();
}

/// Those that order the rows stand first, the first of them marked.
std::vector<Column> columns_for(const Sweep& sweep) {
  std::vector<Metric> metrics = ranked_by(sweep);
  const auto add = [&metrics](Metric metric) {
    if (std::find(metrics.begin(), metrics.end(), metric) == metrics.end()) metrics.push_back(metric);
  };
  for (const Metric metric : {Metric::step_time, Metric::samples_per_s, Metric::memory, Metric::mfu, Metric::power,
                              Metric::energy_per_sample, Metric::price_per_million})
    add(metric);
  const bool changes_hardware = std::any_of(sweep.axes.begin(), sweep.axes.end(), [](const SweepAxis& axis) {
    return axis.name == "hardware" || axis.name.starts_with("hardware.");
  });
  if (changes_hardware) add(Metric::ridge);
  std::vector<Column> columns;
  for (const Metric metric : metrics) columns.push_back({metric, title_of(metric)});
  if (sweep.goal.kind == GoalKind::fastest || sweep.goal.kind == GoalKind::cheapest)
    columns.front().title.insert(0, "*");
  return columns;
}

/// A recording need not say how many samples its step took, nor what memory, nor in which precision.
bool known(const SweepPoint& point, Metric metric) {
  if (metric == Metric::energy_per_sample || metric == Metric::price_per_million) metric = Metric::samples_per_s;
  if (metric == Metric::tokens_per_s) return point[metric] > 0.0;
  if (metric != Metric::samples_per_s && metric != Metric::memory && metric != Metric::mfu) return true;
  return point[metric] > 0.0;
}

using Row = std::vector<std::string>;

/// A heading and rows: the axes' labels, then numbers, or in their place why the point cannot run.
struct Listing {
  std::vector<Row> rows;
  std::size_t axes = 0;

  [[nodiscard]] bool has_numbers(const Row& row) const { return row.size() == rows.front().size(); }
  [[nodiscard]] std::vector<std::size_t> widths() const {
    std::vector<std::size_t> widths(rows.front().size(), 0);
    for (const Row& row : rows)
      for (std::size_t i = 0; i < row.size(); ++i)
        if (i < axes || has_numbers(row)) widths[i] = std::max(widths[i], row[i].size());
    return widths;
  }
  [[nodiscard]] std::size_t width() const {
    std::size_t total = 0;
    for (const std::size_t width : widths()) total += width + 2;
    return total;
  }
  void drop(std::size_t column) {
    const std::size_t whole = rows.front().size();
    for (Row& row : rows)
      if (column < axes || row.size() == whole) row.erase(row.begin() + static_cast<std::ptrdiff_t>(column));
    if (column < axes) --axes;
  }
};

Listing table_of(const Sweep& sweep, const std::vector<SweepPoint>& points, const std::vector<std::size_t>& shown,
                 const std::vector<Column>& columns) {
  Listing table{.rows = {Row{}}, .axes = sweep.axes.size()};
  for (const SweepAxis& axis : sweep.axes) table.rows[0].push_back(short_name(axis.name));
  for (const Column& column : columns) table.rows[0].push_back(column.title);
  table.rows[0].emplace_back("fits");
  for (const std::size_t i : shown) {
    const SweepPoint& point = points[i];
    Row row = labels_of(sweep, point);
    for (std::string& label : row)
      if (label.starts_with("nvidia-")) label = label.substr(7);
    if (point.ran()) {
      for (const Column& column : columns)
        row.push_back(known(point, column.metric) ? four_digits(point[column.metric] / info_of(column.metric).scale)
                                                  : "-");
      row.emplace_back(point.fits ? "yes" : "NO");
    } else {
      row.push_back("cannot run: " + point.error);
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// A table wider than the page says once what is the same in all rows, then leaves out numbers that the goal does not
/// ask for. Answers with what it left out, in words.
std::string fit_to_page(Listing& table, const Sweep& sweep, const std::vector<Column>& columns) {
  const std::size_t page = page_width();
  std::string same, left_out;
  for (std::size_t i = 0; i < table.axes && table.rows.size() > 2 && table.width() > page;) {
    const std::string& first = table.rows[1][i];
    if (std::any_of(table.rows.begin() + 2, table.rows.end(), [&](const Row& row) { return row[i] != first; })) {
      ++i;
      continue;
    }
    same += fmt::format("{}{} {}", same.empty() ? "  all with " : ", ", table.rows[0][i], first);
    table.drop(i);
  }
  for (const Metric metric :
       {Metric::ridge, Metric::power, Metric::mfu, Metric::price_per_million, Metric::energy_per_sample}) {
    if (table.width() <= page) break;
    const auto column =
        std::find_if(columns.begin(), columns.end(), [&](const Column& c) { return c.metric == metric; });
    if (column == columns.end() || ranks(sweep, metric)) continue;
    const Row& heading = table.rows.front();
    table.drop(static_cast<std::size_t>(std::find(heading.begin(), heading.end(), column->title) - heading.begin()));
    left_out += fmt::format("{}{}", left_out.empty() ? "  no room for " : ", ", column->title);
  }
  if (!same.empty()) same += '\n';
  if (!left_out.empty()) left_out += " (--format csv has all)\n";
  return same + left_out;
}

void write_rows(std::string& out, const Sweep& sweep, const std::vector<SweepPoint>& points,
                const std::vector<std::size_t>& shown) {
  const std::vector<Column> columns = columns_for(sweep);
  Listing table = table_of(sweep, points, shown, columns);
  const std::string left_out = fit_to_page(table, sweep, columns);
  const std::vector<std::size_t> widths = table.widths();
  for (const Row& row : table.rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += i < table.axes || !table.has_numbers(row) ? fmt::format("{:<{}}  ", row[i], widths[i])
                                                        : fmt::format("{:>{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    out += "  " + line + "\n";
  }
  out += left_out;
}

std::string goal_words(const Sweep& sweep) {
  switch (sweep.goal.kind) {
    case GoalKind::none: return "points";
    case GoalKind::fastest: return "fastest that fit, by * tokens a second";
    case GoalKind::cheapest:
      return fmt::format("cheapest that reach {:g} samples a second, by * rent an hour", sweep.goal.samples_per_s);
    case GoalKind::pareto: break;
  }
  std::string of;
  for (const Metric metric : sweep.goal.of) of += fmt::format("{}{}", of.empty() ? "" : ", ", info_of(metric).name);
  std::replace(of.begin(), of.end(), '_', ' ');
  return "nothing is better in all of " + of + " than these";
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

}  // namespace

std::string sweep_text(const Sweep& sweep, const std::vector<SweepPoint>& points, std::size_t most_rows) {
  std::size_t ran = 0, fit = 0, allowed = 0;
  for (const SweepPoint& point : points) {
    ran += point.ran();
    fit += point.ran() && point.fits;
    allowed += is_allowed(point, sweep);
  }
  std::string out =
      sweep.title + "\n" + fmt::format("{} point{}, {} fit", points.size(), points.size() == 1 ? "" : "s", fit);
  if (!sweep.constraints.empty()) out += fmt::format(", {} keep the constraints", allowed);
  if (ran < points.size()) out += fmt::format(", {} cannot run", points.size() - ran);
  std::vector<std::size_t> shown = best_points(points, sweep);
  if (sweep.goal.kind == GoalKind::none) {
    shown.resize(points.size());
    std::iota(shown.begin(), shown.end(), std::size_t{0});
  }
  out += fmt::format("\n\n{}:\n", goal_words(sweep));
  if (shown.empty()) return out + "  none\n";
  const std::size_t all = shown.size();
  shown.resize(std::min(all, most_rows));
  write_rows(out, sweep, points, shown);
  if (all > shown.size()) out += fmt::format("  … and {} more (--rows, --format csv)\n", all - shown.size());
  if (const auto each = best_of_each(points, sweep)) {
    out += fmt::format("\nbest of each {}:\n", words(short_name(sweep.axes[each->axis].name)));
    std::vector<std::size_t> best;
    std::string none;
    for (std::size_t i = 0; i < each->points.size(); ++i) {
      if (each->points[i]) best.push_back(*each->points[i]);
      else none += fmt::format("{}{}", none.empty() ? "" : ", ", sweep.axes[each->axis].values[i].label);
    }
    write_rows(out, sweep, points, best);
    if (!none.empty()) write_wrapped(out, "  none of ", none);
  }
  return out;
}

std::string sweep_csv(const Sweep& sweep, const std::vector<SweepPoint>& points) {
  std::string out = "point";
  for (const SweepAxis& axis : sweep.axes) out += "," + csv_field(axis.name);
  for (std::size_t i = 0; i < kMetrics; ++i) out += fmt::format(",{}", info_of(i).json_key);
  out += ",fits,allowed,error\n";
  for (const SweepPoint& point : points) {
    out += fmt::format("{}", point.index);
    for (const std::string& label : labels_of(sweep, point)) out += "," + csv_field(label);
    for (const double value : point.metrics) out += point.ran() ? fmt::format(",{}", value) : ",";
    if (point.ran()) out += fmt::format(",{},{},\n", point.fits, is_allowed(point, sweep));
    else out += ",,," + csv_field(point.error) + "\n";
  }
  return out;
}

ordered_json sweep_json(const Sweep& sweep, const std::vector<SweepPoint>& points) {
  ordered_json axes = ordered_json::array(), list = ordered_json::array(), best = ordered_json::array();
  for (const SweepAxis& axis : sweep.axes) {
    ordered_json values = ordered_json::array();
    for (const AxisValue& value : axis.values) values.push_back(value.label);
    axes.push_back({{"name", axis.name}, {"values", std::move(values)}});
  }
  for (const SweepPoint& point : points) {
    ordered_json entry = point_json(point);
    ordered_json at;
    const std::vector<std::string> labels = labels_of(sweep, point);
    for (std::size_t i = 0; i < labels.size(); ++i) at[sweep.axes[i].name] = labels[i];
    entry["at"] = std::move(at);
    if (point.ran()) entry["allowed"] = is_allowed(point, sweep);
    list.push_back(std::move(entry));
  }
  for (const std::size_t i : best_points(points, sweep)) best.push_back(points[i].index);
  ordered_json of = ordered_json::array(), ranking = ordered_json::array(), each;
  for (const Metric metric : ranked_by(sweep)) ranking.push_back(info_of(metric).json_key);
  if (const auto found = best_of_each(points, sweep)) {
    ordered_json by_value = ordered_json::array();
    for (const auto& place : found->points)
      by_value.push_back(place ? ordered_json(points[*place].index) : ordered_json());
    each = {{"axis", sweep.axes[found->axis].name}, {"points", std::move(by_value)}};
  }
  for (const Metric metric : sweep.goal.of) of.push_back(info_of(metric).json_key);
  return {{"title", sweep.title},
          {"engine", sweep.engine},
          {"axes", std::move(axes)},
          {"goal",
           {{"search", kGoalNames[static_cast<std::size_t>(sweep.goal.kind)]},
            {"samples_per_s", sweep.goal.samples_per_s},
            {"of", std::move(of)}}},
          {"ranked_by", std::move(ranking)},
          {"best", std::move(best)},
          {"best_of_each", std::move(each)},
          {"points", std::move(list)}};
}

}  // namespace ridgeline
