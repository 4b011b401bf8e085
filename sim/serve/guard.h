// Who may ask: pages that this server gave out, and programs of this machine; not pages of others that a browser has
// open beside it (cross-site requests, names that were bound to this address later).
//
// Tested by tests/serve/guard_test.cpp.
#pragma once

#include <string>

#include "sim/serve/request.h"

namespace ridgeline::serve {

struct Guard {
  std::string host = "127.0.0.1";  ///< that the server listens on
  std::string token;               ///< asked of every question where it is not empty

  /// Why this request is refused; empty where it is not. `token`: of the address, for who can send no header.
  [[nodiscard]] std::string refusal(const Request& request, const std::string& token_of_address) const;
  /// Whether a name in the header Host may stand for this server.
  [[nodiscard]] bool knows_host(const std::string& header) const;
};

/// 127.0.0.0/8, ::1 or localhost.
bool is_loopback(const std::string& host);
/// 32 random hexadecimal digits.
std::string new_token();

}  // namespace ridgeline::serve
