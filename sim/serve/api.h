// Questions over HTTP: /api/predict and the rest, answered with the JSON that the commands print. docs/lab.md lists
// them. Knows no network: a server hands it requests, a test does too.
//
// Safe to share between threads. Mistakes of the asker become status 400 with {"error": {message, file, line, column,
// key}}, a question that was given up 409, faults of the program 500. Tested by tests/serve/api_test.cpp.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

#include "sim/answer/session.h"
#include "sim/serve/guard.h"
#include "sim/serve/newest.h"
#include "sim/serve/request.h"
#include "sim/serve/target.h"

namespace ridgeline::serve {

struct ApiOptions {
  std::string tool;                         ///< what answers say they were made by
  Guard guard{};                            ///< who may ask
  std::uint64_t most_sweep_points = 20000;  ///< of one question
  int most_sweeps = 2;                      ///< at once
};

class Api {
 public:
  explicit Api(ApiOptions options);

  /// Never throws for what a request says. `stop`: given up from outside (a connection that ended).
  Reply answer(const Request& request, std::stop_token stop = {}, const OnProgress& progress = {});
  /// The reply to a request that is refused before its body is read, by its headers alone; status 200: go on.
  [[nodiscard]] Reply admit(const Request& request) const;

 private:
  struct Asked;
  Reply route(const Asked& asked);
  Reply predict(const Asked& asked);
  Reply compare(const Asked& asked);
  Reply fit(const Asked& asked);
  Reply sweep(const Asked& asked);
  Reply plan(const Asked& asked);
  Reply kernels(const Asked& asked);
  /// Descriptions that questions share, begun anew after some hundred questions: a slider makes one each time it moves.
  std::shared_ptr<Descriptions> descriptions();

  ApiOptions options_;
  Session session_;
  Newest newest_;
  std::atomic<int> sweeps_{0};
  std::mutex describing_;
  std::shared_ptr<Descriptions> descriptions_;
  int described_ = 0;
};

/// {"error": {"message": …}} with a status.
Reply error_reply(int status, const std::string& message);

}  // namespace ridgeline::serve
