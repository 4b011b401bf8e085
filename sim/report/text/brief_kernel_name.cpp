#include "sim/report/text/brief_kernel_name.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace ridgeline {
namespace {

/// Both spellings of a namespace without a name, whose brackets are none of a template.
std::string without_unnamed(std::string_view name) {
  std::string text(name);
  for (const std::string_view unnamed : {"(anonymous namespace)::", "<unnamed>::"})
    for (std::size_t at; (at = text.find(unnamed)) != text.npos;) text.erase(at, unnamed.size());
  return text;
}

/// Tells whether a word of a template's arguments says what the kernel computes.
bool tells(std::string_view word) {
  constexpr std::array<std::string_view, 8> kShells{"BinaryFunctor",          "UnaryFunctor",   "AUnaryFunctor",
                                                    "BUnaryFunctor",          "CUDAFunctor",    "CompareFunctor",
                                                    "gpu_kernel_impl_nocast", "gpu_kernel_impl"};
  if (std::find(kShells.begin(), kShells.end(), word) != kShells.end()) return false;
  for (const std::string_view end : {"Functor", "functor", "_kernel_cuda", "_kernel_impl", "Ops", "_cuda_kernel"})
    if (word.ends_with(end)) return true;
  return word.find("Functor_") != word.npos || word.starts_with("cutlass_") || word.find("OnSelf_") != word.npos;
}

}  // namespace

std::string brief_kernel_name(std::string_view name) {
  if (name.starts_with("Mem") || name.starts_with("[")) return std::string(name);
  std::string text = without_unnamed(name);
  if (text.starts_with("void ")) text.erase(0, 5);
  const std::size_t end = std::min(text.size(), text.find_first_of("<("));
  std::string brief = text.substr(0, end);
  if (const std::size_t last = brief.rfind("::"); last != brief.npos) brief.erase(0, last + 2);
  for (std::size_t at = end; at < text.size();) {
    const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
    std::size_t stop = at;
    while (stop < text.size() && is_word(text[stop])) ++stop;
    if (const std::string_view word = std::string_view(text).substr(at, stop - at); tells(word)) {
      brief += " ";
      brief += word;
      break;
    }
    at = stop + 1;
  }
  return brief.empty() ? std::string(name) : brief;
}

}  // namespace ridgeline
