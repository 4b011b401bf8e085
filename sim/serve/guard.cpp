#include "sim/serve/guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <random>
#include <string_view>

namespace ridgeline::serve {
namespace {

/// "localhost" of "localhost:8137", "::1" of "[::1]:8137"; empty for what is no host with or without a port.
std::string name_of_host(std::string_view header) {
  std::string_view name = header, rest;
  if (header.starts_with('[')) {
    const std::size_t end = header.find(']');
    if (end == std::string_view::npos) return "";
    name = header.substr(1, end - 1);
    rest = header.substr(end + 1);
  } else if (const std::size_t colon = header.find(':'); colon != std::string_view::npos) {
    name = header.substr(0, colon);
    rest = header.substr(colon);
  }
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!rest.empty() &&
      (rest.front() != ':' || rest.size() < 2 || rest.size() > 6 || !std::all_of(rest.begin() + 1, rest.end(), digit)))
    return "";
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

/// An address in numbers cannot be bound to another one later.
bool is_numeric(const std::string& name) {
  const auto v4 = [](char c) { return (c >= '0' && c <= '9') || c == '.'; };
  const auto v6 = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) || c == ':' || c == '.'; };
  if (name.empty()) return false;
  return std::all_of(name.begin(), name.end(), v4) ||
         (name.find(':') != std::string::npos && std::all_of(name.begin(), name.end(), v6));
}

/// Takes as long for any two texts of one length.
bool same(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || (host.starts_with("127.") && is_numeric(host));
}

bool Guard::knows_host(const std::string& header) const {
  const std::string name = name_of_host(header);
  if (name.empty()) return false;
  if (is_loopback(name) || name == host) return true;
  return !is_loopback(host) && is_numeric(name);
}

std::string Guard::refusal(const Request& request, const std::string& token_of_address) const {
  if (!knows_host(request.host))
    return fmt::format("the header Host names '{}', which is not this server", request.host);
  if (!request.origin.empty() && request.origin != "http://" + request.host)
    return fmt::format("a page of {} asks; this server answers its own pages alone", request.origin);
  if (request.origin.empty() && (request.fetch_site == "cross-site" || request.fetch_site == "same-site"))
    return "a page of another server asks; this server answers its own pages alone";
  if (token.empty()) return "";
  constexpr std::string_view kBearer = "Bearer ";
  const std::string given =
      request.authorization.starts_with(kBearer) ? request.authorization.substr(kBearer.size()) : token_of_address;
  return same(given, token) ? ""
                            : "the token that the server printed when it started is missing (Authorization: Bearer)";
}

std::string new_token() {
  std::random_device random;
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:08x}", random());
  return token;
}

}  // namespace ridgeline::serve
