// The pickle of a memory snapshot out of what people keep it in: a page of PyTorch's memory viewer (base64), a file of
// torch.save (a zip archive).
#pragma once

#include <string>
#include <string_view>

namespace ridgeline {

/// The pickle in `bytes`; `bytes` themselves where they are no page and no archive. Throws UserError, which begins with
/// `source`, for a damaged one.
std::string unpacked_snapshot(std::string bytes, const std::string& source);

}  // namespace ridgeline
