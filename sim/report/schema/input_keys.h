// The keys of every kind of file that the program reads, found by asking its readers.
//
// A reader is run on a small file that it takes, then again with each key it knows set to what no key takes, to `none`,
// to an empty mapping and to an empty list; config::AskedOf hears what it asks. So a key that a reader gains is here,
// in `ridgeline schema` and in docs/keys.md without further work, but for its meaning (key_meanings.cpp).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/config/asked.h"

namespace ridgeline {

struct InputKey {
  std::string path;                    ///< dotted; "axes.*" stands for names that the file chooses, "x.0" for items
  std::vector<config::Asked> asked{};  ///< one for each form that the value may have; empty: any
  std::vector<std::string> words{};    ///< texts that are taken besides: "none"
  std::string document{};              ///< name of the kind of file whose contents may stand in its place
  bool required = false;
  bool zero_is_none = false;  ///< of a number: 0 is taken besides its range
  bool described = false;     ///< {value: ..., source: ...}, with spread and note
  bool bare = false;          ///< of a described one: the value alone, where the file has a source of its own
  std::string meaning{};

  [[nodiscard]] const config::Asked* form(config::Asked::Kind kind) const;
};

/// One kind of file.
struct InputDocument {
  std::string name;   ///< "scenario"
  std::string title;  ///< in a few words
  std::vector<InputKey> keys;
};

/// scenario, model, hardware, host, software, sweep, exercise. Reads shipped descriptions, hundreds of times.
std::vector<InputDocument> input_documents();

/// What is said of a key; empty where nothing is.
std::string_view meaning_of(std::string_view document, std::string_view path);
struct KeyMeaning {
  std::string_view document, path, meaning;
};
/// Of the documents whose readers have no table of their own.
std::vector<KeyMeaning> key_meanings();

}  // namespace ridgeline
