// Operations that a program calls, as PyTorch and Transformers name them.
#pragma once

#include <span>

#include "sim/workload/aten/convolution.h"
#include "sim/workload/networks/program_value.h"

namespace ridgeline::networks {

class ProgramNetwork;

struct ProgramFunction {
  std::string_view name;
  std::string_view parameters;
  ProgramValue (*run)(ProgramNetwork&, const CallArguments&);
};

/// Of numbers of elements; of shapes and positions; of images.
std::span<const ProgramFunction> arithmetic_functions();
std::span<const ProgramFunction> shape_functions();
std::span<const ProgramFunction> network_functions();
std::span<const ProgramFunction> mixer_functions();  ///< scans and other mixers of tokens

const ProgramFunction* find_program_function(std::string_view name);
std::vector<std::string> program_function_names();

/// conv1d and conv2d, with the casts of autocast. Refuses what does not fit.
Tensor convolved(ProgramNetwork& n, const CallArguments& arguments, const Tensor& weight, const Tensor& bias,
                 const eager::aten::ConvolutionSteps& steps);

/// Sizes after broadcasting; refuses those that do not fit.
void require_broadcast(const CallArguments& arguments, const Tensor& a, const Tensor& b);

}  // namespace ridgeline::networks
