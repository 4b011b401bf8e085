#include "tests/invariants/run_search.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

namespace ridgeline::invariants {
namespace {

using nlohmann::json;

constexpr unsigned kMostSeconds = 120;  ///< of a case

std::string line_of(std::uint64_t index, const CaseResult& result) {
  json findings = json::array();
  for (const Finding& f : result.findings)
    findings.push_back({{"kind", f.kind}, {"group", f.group}, {"size", f.size}, {"text", f.text}});
  return json{{"case", index}, {"compared", result.compared}, {"refused", result.refused}, {"findings", findings}}.dump(
      -1, ' ', false, json::error_handler_t::replace);
}

/// What a process works on, for its parent to read when it is gone.
struct Progress {
  std::atomic<std::uint64_t> current;
};

class Worker {
 public:
  Worker(const Search& search, const CaseOptions& options, std::uint64_t next, std::uint64_t end, std::uint64_t stride,
         Progress* progress, std::string file)
      : search_(search),
        options_(options),
        next_(next),
        end_(end),
        stride_(stride),
        progress_(progress),
        file_(std::move(file)) {}

  void start() {
    progress_->current = next_;
    pid_ = fork();
    if (pid_ < 0) throw std::runtime_error("cannot start a process");
    if (pid_ == 0) work();
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] const std::string& file() const { return file_; }
  /// Notes how the process ended; true where cases are left.
  bool ended(int status, SearchResult& result) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return false;
    const std::uint64_t index = progress_->current;
    const std::string how = !WIFSIGNALED(status)          ? fmt::format("exit {}", WEXITSTATUS(status))
                            : WTERMSIG(status) == SIGALRM ? fmt::format("no answer in {} s", kMostSeconds)
                                                          : strsignal(WTERMSIG(status));
    result.found.push_back({index,
                            {"crash", how, 1.0,
                             fmt::format("run the case alone to see it: --only {} --seed {} --case {}", search_.name,
                                         options_.seed, index)}});
    next_ = index + stride_;
    return next_ < end_;
  }

 private:
  [[noreturn]] void work() {
    std::ofstream out(file_, std::ios::app);
    for (std::uint64_t index = next_; index < end_; index += stride_) {
      progress_->current = index;
      alarm(kMostSeconds);
      CaseResult result;
      try {
        result = search_.run(options_, index);
      } catch (const std::exception& error) {
        result.findings.push_back(
            {"exception", std::string(error.what()).substr(0, 60), 1.0,
             fmt::format("{}\n      --only {} --seed {} --case {}", error.what(), search_.name, options_.seed, index)});
      }
      out << line_of(index, result) << std::endl;
    }
    out.close();
    _exit(0);
  }

  const Search& search_;
  const CaseOptions& options_;
  std::uint64_t next_, end_, stride_;
  Progress* progress_;
  std::string file_;
  pid_t pid_ = -1;
};

void gather(const std::string& file, SearchResult& result) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const json record = json::parse(line, nullptr, false);
    if (record.is_discarded()) continue;  // a process died while it wrote
    ++result.cases;
    for (const auto& name : record["compared"]) ++result.compared[name.get<std::string>()];
    for (const auto& message : record["refused"]) {
      ++result.refused;
      ++result.refusals[message.get<std::string>().substr(0, 100)];
    }
    for (const auto& f : record["findings"])
      result.found.push_back({record["case"].get<std::uint64_t>(),
                              {f["kind"], f["group"], f["size"].is_null() ? 0.0 : f["size"].get<double>(), f["text"]}});
  }
}

}  // namespace

SearchResult run_search(const Search& search, const CaseOptions& options, std::uint64_t first, std::uint64_t count,
                        unsigned processes) {
  processes = std::max(1U, processes);
  void* shared = mmap(nullptr, processes * sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::runtime_error("no memory to share with other processes");
  auto* progress = static_cast<Progress*>(shared);
  const std::string stem =
      (std::filesystem::temp_directory_path() / fmt::format("ridgeline-search-{}-{}", getpid(), search.name)).string();
  SearchResult result;
  std::vector<Worker> workers;
  for (unsigned i = 0; i < processes && i < count; ++i) {
    workers.emplace_back(search, options, first + i, first + count, processes, progress + i,
                         fmt::format("{}-{}", stem, i));
    workers.back().start();
  }
  for (std::size_t running = workers.size(); running > 0;) {
    int status = 0;
    const pid_t pid = wait(&status);
    const auto worker = std::find_if(workers.begin(), workers.end(), [&](const Worker& w) { return w.pid() == pid; });
    if (worker == workers.end()) continue;
    if (worker->ended(status, result)) worker->start();
    else --running;
  }
  for (const Worker& worker : workers) {
    gather(worker.file(), result);
    std::filesystem::remove(worker.file());
  }
  munmap(shared, processes * sizeof(Progress));
  return result;
}

namespace {

struct Sum {
  std::set<std::uint64_t> cases;
  std::uint64_t findings = 0;
  double worst = 0;
};

void add_table(std::string& text, const char* title, const std::map<std::string, Sum>& sums,
               const std::map<std::string, std::uint64_t>* compared) {
  if (sums.empty()) return;
  std::vector<std::pair<std::string, Sum>> rows(sums.begin(), sums.end());
  std::sort(rows.begin(), rows.end(),
            [](const auto& a, const auto& b) { return a.second.findings > b.second.findings; });
  text += fmt::format("\n{:<52} {:>8} {:>9} {:>9}\n", title, "findings", "compared", "worst");
  for (const auto& [name, sum] : rows) {
    std::string of;
    if (compared)
      if (const auto found = compared->find(name); found != compared->end()) of = fmt::format("{}", found->second);
    text += fmt::format("{:<52} {:>8} {:>9} {:>8.2f} %\n", name.substr(0, 52), sum.findings, of, 100.0 * sum.worst);
  }
}

}  // namespace

std::string search_text(const Search& search, const SearchResult& result, std::uint64_t seed, std::size_t most) {
  std::map<std::string, Sum> kinds, groups;
  std::set<std::uint64_t> bad;
  std::uint64_t compared = 0;
  for (const auto& [name, count] : result.compared) compared += count;
  for (const auto& [index, finding] : result.found) {
    bad.insert(index);
    for (Sum* sum : {&kinds[finding.kind], &groups[finding.group]}) {
      ++sum->findings;
      sum->worst = std::max(sum->worst, finding.size);
    }
  }
  std::string text =
      fmt::format("{}: {}\n  seed {}: {} cases, {} compared, {} refused, {} findings in {} cases\n", search.name,
                  search.what, seed, result.cases, compared, result.refused, result.found.size(), bad.size());
  add_table(text, "  kind", kinds, nullptr);
  add_table(text, "  group", groups, &result.compared);
  std::vector<SearchResult::Found> found = result.found;
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.finding.size > b.finding.size; });
  std::map<std::string, std::size_t> shown;
  for (const auto& [index, finding] : found)
    if (shown[finding.kind]++ < most)
      text += fmt::format("\n  case {} · {} · {} · {:.2f} %\n      {}\n", index, finding.kind, finding.group,
                          100.0 * finding.size, finding.text);
  return text;
}

}  // namespace ridgeline::invariants
