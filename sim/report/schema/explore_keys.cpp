#include "sim/report/schema/explore_keys.h"

#include <algorithm>

#include "sim/config/config_error.h"

namespace ridgeline {
namespace {

using config::Asked;
using config::AskedOf;
using config::ConfigError;
using AskedByPath = std::map<std::string, std::vector<Asked>>;

constexpr const char* kNothing = "'?'";  // what no number, flag or choice is

std::string below(const std::string& path, const std::string& key) { return path.empty() ? key : path + "." + key; }

void add(std::vector<std::string>& names, const std::vector<std::string>& more) {
  for (const std::string& name : more)
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

class Explorer {
 public:
  explicit Explorer(const Exploration& e) : e_(e) {}

  std::vector<InputKey> keys() {
    (void)look({}, "");
    visit("", "");
    return std::move(keys_);
  }

 private:
  /// Whether the reader takes the file.
  bool look(const std::vector<config::Override>& changes, const std::string& without) {
    const AskedOf asked;
    bool fine = true;
    failed_at_.clear();
    try {
      e_.read(changes, without);
    } catch (const ConfigError& error) {
      fine = false;
      failed_at_ = error.key();
    } catch (const UserError&) {
      fine = false;
    }
    for (const auto& [path, forms] : asked.notes())
      for (const Asked& form : forms) merge(path, form);
    return fine;
  }

  void merge(const std::string& path, const Asked& form) {
    std::vector<Asked>& known = notes_[path];
    for (Asked& one : known)
      if (one.kind == form.kind) return add(one.names, form.names);
    known.push_back(form);
  }

  [[nodiscard]] std::vector<std::string> names_at(const std::string& path) const {
    const auto found = notes_.find(path);
    if (found == notes_.end()) return {};
    for (const Asked& form : found->second)
      if (form.kind == Asked::Kind::mapping) return form.names;
    return {};
  }

  /// `path` as the reader sees it, `shown` as the table has it.
  void visit(const std::string& path, const std::string& shown) {
    // Visiting a key may teach further ones of this mapping.
    std::set<std::string> done;
    for (bool more = true; more;) {
      more = false;
      for (const std::string& name : names_at(path))
        if (done.insert(name).second) {
          more = true;
          key(below(path, name), below(shown, name));
        }
    }
    if (const auto free = e_.free.find(path); free != e_.free.end()) key(below(path, free->second), below(shown, "*"));
  }

  void key(const std::string& path, const std::string& shown) {
    const std::size_t place = keys_.size();
    keys_.push_back({.path = shown});
    bool known = false, none = false;
    (void)forms_of(path, known);  // with its source: the file at hand has it, and that was all that is asked
    if (!known) (void)look({}, path);
    const bool required = !known && failed_at_ == path;
    if (!known && !e_.names.contains(path)) {
      (void)look({{path, kNothing, ""}}, "");
      none = look({{path, "none", ""}}, "");
      if (!e_.free.contains(path)) (void)look({{path, "{}", ""}}, "");
      (void)look({{path, "[]", ""}}, "");
      for (auto [at, end] = e_.more.equal_range(path); at != end; ++at) (void)look({{path, at->second, ""}}, "");
    }
    InputKey& found = keys_[place];
    found.required = required;
    found.asked = forms_of(path, found.described);
    const bool any_text = found.asked.empty() || found.form(Asked::Kind::text) || found.form(Asked::Kind::choice);
    if (none && !any_text) found.words.emplace_back("none");
    const bool described = found.described;
    if (found.form(Asked::Kind::list) && notes_.contains(path + ".0")) items(path, shown);
    if (!described) visit(path, shown);
  }

  void items(const std::string& path, const std::string& shown) {
    bool described = false;
    keys_.push_back({.path = shown + ".0", .asked = forms_of(path + ".0", described)});
    if (!described && !names_at(path + ".0").empty()) visit(path + ".0", shown + ".0");
  }

  [[nodiscard]] std::vector<Asked> forms_of(const std::string& path, bool& described) const {
    const auto found = notes_.find(path);
    std::vector<Asked> forms = found == notes_.end() ? std::vector<Asked>{} : found->second;
    const auto is = [&](Asked::Kind kind) {
      return std::find_if(forms.begin(), forms.end(), [kind](const Asked& form) { return form.kind == kind; });
    };
    // A choice is asked for as a text first.
    if (is(Asked::Kind::choice) != forms.end())
      if (const auto text = is(Asked::Kind::text); text != forms.end()) forms.erase(text);
    const auto mapping = is(Asked::Kind::mapping);
    const auto has = [&](const char* name) {
      return std::find(mapping->names.begin(), mapping->names.end(), name) != mapping->names.end();
    };
    if (mapping != forms.end() && has("value") && has("spread")) {
      described = true;
      forms.erase(mapping);
    }
    return forms;
  }

  const Exploration& e_;
  AskedByPath notes_;
  std::vector<InputKey> keys_;
  std::string failed_at_;  ///< the key that the last look ended at
};

}  // namespace

const Asked* InputKey::form(Asked::Kind kind) const {
  for (const Asked& one : asked)
    if (one.kind == kind) return &one;
  return nullptr;
}

std::vector<InputKey> explore_keys(const Exploration& exploration) { return Explorer(exploration).keys(); }

}  // namespace ridgeline
