// A recorded allocation history or memory snapshot through the caching allocator, as it was or under other settings.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ridgeline {

struct HistoryQuestion {
  std::string file;          ///< csv history, snapshot, page of the viewer or printed text of PyTorch, plain or gzip
  std::string settings;      ///< as PYTORCH_ALLOC_CONF; empty: those of the recording
  std::string capacity;      ///< "24 GiB"; empty: without end
  std::int64_t device = -1;  ///< of a snapshot of several; -1: the first with a history
};

/// Throw UserError for a file that is neither, settings and sizes that cannot be read, a device it does not have.
std::string history_text(const HistoryQuestion& question);
nlohmann::ordered_json history_json(const HistoryQuestion& question);

}  // namespace ridgeline
