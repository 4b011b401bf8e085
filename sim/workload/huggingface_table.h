// Families of Hugging Face configurations as data: models/families/MODEL_TYPE.yaml says which key of a config.json
// becomes which key of a composition.
//
//   architectures: {OPTForCausalLM: language-model}   # class: head; the first is what is built where none is named.
//                                                       Classes that classify tokens, and decoders sequences, as all do
//                                                       are known: OPTForSequenceClassification
//   elsewhere: {CLIPForImageClassification: clip_vision_model}  # classes that another table describes
//   variants: [{key: k, is: v, table: name}]    # another table where a key has a value
//   program: blocks/NAME.block                  # a program in the place of a composition: `set` and `keys` are of its
//   sizes own_heads: true                             # those that classify tokens do it in a way of their own like:
//   mistral                                     # another table, whose entries hold where this one says nothing text:
//   [text_config, llama]          # a part of the configuration that the table of its own model_type describes; or
//                                       # llama's, of the whole configuration where it has no such part
//   vision: [vision_config, clip_vision_model]        # the same of an encoder of images
//   else set: {norm: layer, positions: learned}            # keys of the composition that every such network has keys:
//   {layers: num_hidden_layers}                 # of the composition, from the configuration; or a mapping:
//     #  key       one name or several, the first that is given counts; dots go into mappings
//     #  otherwise what a missing key means
//     #  values    what each value becomes
//     #  letters   what each letter of a text becomes: a list
//     #  plus, times, over   a number; another key or a number, by which it is multiplied; a number that divides it
//     #  count     true: how many entries a mapping or a list has
//   defaults: {hidden_dropout_prob: 0.1}              # what Transformers takes where a configuration lacks the key
//   when: [{key: k, is: v, otherwise: o, set: {...}, keys: {...}}]  # further ones where a key has a value
//   encoder: {set, keys, when}                        # of an encoder
//   fixed: {key: [values]}                            # others are refused by name
//   ignored: [key]                                    # changes neither time nor memory
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/workload/huggingface_config.h"

namespace ridgeline {

/// Sorted.
std::vector<std::string> family_table_names();
/// Throws config::ConfigError.
HuggingFaceDescription description_by_table(const std::string& model_type, const config::Value& config);

}  // namespace ridgeline
