#include "sim/study/calibration/probe_result.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/input/json_depth.h"
#include "sim/input/text_source.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using nlohmann::json;

/// Reads members and notes what is wrong with them, to be told all at once.
class Reader {
 public:
  std::vector<std::string> reasons;

  const json* member(const json& object, const char* key, const std::string& where) {
    if (!object.is_object()) {
      reasons.push_back(fmt::format("{}: expected an object, got {}", where, object.type_name()));
      return nullptr;
    }
    const auto found = object.find(key);
    if (found == object.end()) {
      reasons.push_back(fmt::format("{}: \"{}\" is missing", where, key));
      return nullptr;
    }
    return &*found;
  }

  double number(const json& object, const char* key, const std::string& where) {
    const json* found = member(object, key, where);
    if (!found) return 0.0;
    if (!found->is_number() || !std::isfinite(found->get<double>()) || found->get<double>() < 0.0) {
      reasons.push_back(fmt::format("{}: \"{}\" is {}, not a finite number of at least 0", where, key, found->dump()));
      return 0.0;
    }
    return found->get<double>();
  }

  std::string text(const json& object, const char* key, const std::string& where) {
    const json* found = member(object, key, where);
    if (!found) return "";
    if (!found->is_string()) {
      reasons.push_back(fmt::format("{}: \"{}\" is {}, not a text", where, key, found->dump()));
      return "";
    }
    return found->get<std::string>();
  }

  /// Every number of an object by its key.
  std::map<std::string, double> numbers(const json& object, const char* key, const std::string& where) {
    std::map<std::string, double> result;
    const json* found = member(object, key, where);
    if (!found || !found->is_object()) {
      if (found) reasons.push_back(fmt::format("{}: \"{}\" is not an object", where, key));
      return result;
    }
    for (const auto& [name, value] : found->items())
      if (!value.is_string()) result[name] = number(*found, name.c_str(), where);
    return result;
  }
};

ProbeCurve read_curve(const json& object, Reader& reader) {
  ProbeCurve curve;
  curve.name = reader.text(object, "name", "a curve");
  const std::string where = "curve " + curve.name;
  curve.unit = reader.text(object, "unit", where);
  curve.what = reader.text(object, "what", where);
  if (const json* correct = reader.member(object, "correct", where); correct && *correct != true)
    reader.reasons.push_back(fmt::format("{}: the microkernel's result was wrong, so its times mean nothing", where));
  const json* points = reader.member(object, "points", where);
  if (!points) return curve;
  for (const json& entry : *points) {
    ProbePoint point;
    const std::string here = fmt::format("{}, point {}", where, curve.points.size() + 1);
    point.at = reader.numbers(entry, "at", here);
    point.value = reader.number(entry, "value", here);
    point.seconds = reader.number(entry, "seconds", here);
    point.spread = reader.number(entry, "spread", here);
    curve.points.push_back(std::move(point));
  }
  return curve;
}

}  // namespace

double ProbePoint::operator[](std::string_view condition) const {
  const auto found = at.find(std::string(condition));
  if (found == at.end()) throw UserError(fmt::format("probe result: a point lacks its condition \"{}\"", condition));
  return found->second;
}

const ProbeCurve* ProbeResult::find(std::string_view curve) const {
  for (const ProbeCurve& c : curves)
    if (c.name == curve) return &c;
  return nullptr;
}

ProbeResult probe_result_from(std::string_view text, std::string_view name) {
  json root;
  try {
    check_json_depth(text);
    root = json::parse(text);
  } catch (const json::exception& e) {
    throw UserError(
        fmt::format("{}: not JSON ({}); a probe result is what ./dev probe writes", name, json_mistake(e.what())));
  } catch (const UserError& e) {
    throw UserError(fmt::format("{}: {}", name, e.what()));
  }
  if (!root.is_object() || root.value("format", json()) != "ridgeline-probe")
    throw UserError(fmt::format("{}: not a probe result: \"format\" is not \"ridgeline-probe\"", name));
  if (root.value("version", json()) != 1)
    throw UserError(fmt::format("{}: version {} of the format; this program reads version 1", name,
                                root.value("version", json()).dump()));
  Reader reader;
  ProbeResult result;
  result.date = reader.text(root, "date", "the file");
  result.device = reader.numbers(root, "device", "device");
  if (const json* device = reader.member(root, "device", "the file"); device && device->is_object())
    result.device_name = reader.text(*device, "name", "device");
  result.software = reader.numbers(root, "software", "software");
  result.context = reader.numbers(root, "context", "context");
  if (const json* curves = reader.member(root, "curves", "the file"))
    for (const json& curve : *curves) result.curves.push_back(read_curve(curve, reader));
  if (!reader.reasons.empty())
    throw UserError(fmt::format("{}: refused\n  {}", name, fmt::join(reader.reasons, "\n  ")));
  return result;
}

ProbeResult load_probe_result(const std::string& file) { return probe_result_from(read_text(file), file); }

}  // namespace ridgeline
