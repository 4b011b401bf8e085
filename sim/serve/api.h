// Questions over HTTP: /api/predict and the rest, answered with the JSON that the commands print. docs/lab.md lists
// them. Knows no network: a server hands it requests, a test does too.
//
// Safe to share between threads. Mistakes of the asker become status 400 with {"error": {message, file, line, column,
// key}}, a question that was given up 409, one that exceeds its budget 422, faults of the program 500. Tested by
// tests/serve/api_test.cpp.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

#include "sim/answer/session.h"
#include "sim/serve/guard.h"
#include "sim/serve/newest.h"
#include "sim/serve/request.h"
#include "sim/serve/target.h"
#include "sim/units/budget.h"

namespace ridgeline::serve {

struct ApiOptions {
  std::string tool;                             ///< what answers say they were made by
  Guard guard{};                                ///< who may ask
  std::uint64_t most_sweep_points = 20000;      ///< of one question
  int most_sweeps = 2;                          ///< at once
  std::int64_t memory = kMemoryBudget / 2;      ///< bytes by which the process may grow while a question is answered
  std::int64_t process_memory = kMemoryBudget;  ///< that it may hold while several are
  std::chrono::seconds time_of_answer{60}, time_of_study{600};
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
  Reply within_budget(const Asked& asked);
  Reply route(const Asked& asked);
  Reply predict(const Asked& asked);
  Reply compare(const Asked& asked);
  Reply fit(const Asked& asked);
  Reply sweep(const Asked& asked);
  Reply plan(const Asked& asked);
  Reply kernels(const Asked& asked);
  Reply collectives(const Asked& asked);
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

/// How long a question may take: each lane has threads of its own, so that long answers delay no short ones.
enum class Lane : std::uint8_t {
  shipped,  ///< the page, and what is shipped with the program: milliseconds
  answers,  ///< one step: seconds at most
  studies   ///< many steps, or simulated ones
};
Lane lane_of(const Request& request);

/// {"error": {"message": …}} with a status.
Reply error_reply(int status, const std::string& message);

}  // namespace ridgeline::serve
