// A recorded kernel's name as short as a table has room for it, with what tells it from others.
#pragma once

#include <string>
#include <string_view>

namespace ridgeline {

/// "vectorized_elementwise_kernel MulFunctor" of a template of PyTorch's, the function without its arguments otherwise.
std::string brief_kernel_name(std::string_view name);

}  // namespace ridgeline
