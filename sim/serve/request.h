// What a person's browser asks and what it is answered, without the network between.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace ridgeline::serve {

struct Request {
  std::string method = "GET";
  std::string target = "/";  ///< path and query as they were sent
  std::string body{};
  // Headers that decide who may ask; empty where there is none.
  std::string host{}, origin{}, fetch_site{}, authorization{};
};

struct Reply {
  int status = 200;
  std::string type = "application/json";
  std::string body{};
  std::string allow{};  ///< methods, of status 405
};

/// How much of a long question is done.
using OnProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

}  // namespace ridgeline::serve
