// Writes C++ of a table of fitted constants: generate_tables data/laws/TABLE.yaml TABLE.inc TABLE_fields.inc
//
// TABLE.inc has one constexpr struct a class, with the numbers as the YAML writes them; TABLE_fields.inc the places of
// the constants by name, for the program that fits them. A name that the struct does not have fails to compile, at its
// line of the YAML.
#include <yaml-cpp/yaml.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>

namespace {

/// A number as C++ and YAML both write it; else throws with its place.
std::string number(const YAML::Node& node) {
  const std::string text = node.Scalar();
  std::size_t read = 0;
  try {
    (void)std::stod(text, &read);
  } catch (const std::exception&) {
    read = 0;
  }
  if (read == 0 || read != text.size() || text.find_first_not_of("0123456789+-.eE") != std::string::npos)
    throw std::runtime_error("line " + std::to_string(node.Mark().line + 1) + ": \"" + text + "\" is no number");
  return text;
}

std::string identifier(const std::string& text) {
  if (text.empty() || text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.") != std::string::npos)
    throw std::runtime_error("\"" + text + "\": names are lower case letters, digits, '_' and '.'");
  return text;
}

void generate(const std::string& path, const std::string& table_path, const std::string& fields_path) {
  const YAML::Node root = YAML::LoadFile(path);
  const std::string place = path.substr(path.rfind("data/laws/")), table = identifier(root["table"].Scalar()),
                    type = root["struct"].Scalar();
  std::ofstream code(table_path), fields(fields_path);
  std::set<std::string> names;
  code << "// Generated from " << place << ".\nnamespace ridgeline::" << table << "_table {\n";
  for (const auto& entry : root["classes"]) {
    code << "inline constexpr " << type << ' ' << identifier(entry.first.Scalar()) << " = [] {\n  " << type << " c;\n";
    for (const auto& constant : entry.second["constants"]) {
      const std::string name = identifier(constant.first.Scalar());
      code << "#line " << constant.first.Mark().line + 1 << " \"" << place << "\"\n  c." << name << " = "
           << number(constant.second["value"]) << ";\n";
      names.insert(name);
    }
    code << "  return c;\n}();\n";
  }
  code << "}  // namespace ridgeline::" << table << "_table\n";
  fields << "// Generated from " << place << ".\n";
  for (const std::string& name : names)
    fields << "{\"" << name << "\", [](" << type << "& c) -> double& { return c." << name << "; }},\n";
  if (!code.flush() || !fields.flush()) throw std::runtime_error("cannot write " + table_path);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: generate_tables data/laws/TABLE.yaml TABLE.inc TABLE_fields.inc\n", stderr);
    return 2;
  }
  try {
    generate(argv[1], argv[2], argv[3]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", argv[1], e.what());
    return 1;
  }
  return 0;
}
