#include "sim/network/mesh_rings.h"

#include <algorithm>
#include <boost/graph/adjacency_matrix.hpp>
#include <boost/graph/hawick_circuits.hpp>
#include <map>
#include <mutex>

namespace ridgeline {
namespace {

using Graph = boost::adjacency_matrix<boost::directedS>;
using Ring = std::vector<std::size_t>;

/// Keeps the circuits through all GPUs, each in one direction.
struct WholeRings {
  std::size_t gpus;
  std::vector<Ring>* rings;

  template <typename Path>
  void cycle(const Path& path, const Graph&) const {
    if (path.size() != gpus) return;
    Ring ring(path.begin(), path.end());
    std::rotate(ring.begin(), std::min_element(ring.begin(), ring.end()), ring.end());
    if (ring[1] < ring.back()) rings->push_back(std::move(ring));
  }
};

bool take(LinkCounts& links, const Ring& ring, int count) {
  bool free = true;
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const std::size_t from = ring[i], to = ring[(i + 1) % ring.size()];
    links[from][to] -= count;
    links[to][from] -= count;
    free = free && links[from][to] >= 0;
  }
  return free;
}

/// The most of `rings`, from `first` on, that fit together.
int most_rings(LinkCounts& links, const std::vector<Ring>& rings, std::size_t first, int bound) {
  int best = 0;
  for (std::size_t i = first; i < rings.size() && best < bound; ++i) {
    const bool fits = take(links, rings[i], 1);
    if (fits) best = std::max(best, 1 + most_rings(links, rings, i, bound - 1));
    (void)take(links, rings[i], -1);
  }
  return best;
}

/// Searched up to as many GPUs; all circuits of a larger mesh are too many.
constexpr std::size_t kMostSearched = 8;

int search_rings(const LinkCounts& links) {
  const std::size_t gpus = links.size();
  if (gpus < 2) return 0;
  if (gpus == 2) return links[0][1];
  Graph graph(gpus);
  int bound = links[0][1];
  for (std::size_t i = 0; i < gpus; ++i) {
    int degree = 0;
    for (std::size_t j = 0; j < gpus; ++j) {
      degree += links[i][j];
      if (i != j && links[i][j] > 0) boost::add_edge(i, j, graph);
    }
    bound = i == 0 ? degree / 2 : std::min(bound, degree / 2);  // a ring takes two links of each GPU
  }
  if (gpus > kMostSearched) return 2 * bound;  // what the links of the least linked GPU allow
  std::vector<Ring> rings;
  boost::hawick_unique_circuits(graph, WholeRings{gpus, &rings});
  LinkCounts free = links;
  return 2 * most_rings(free, rings, 0, bound);
}

}  // namespace

LinkCounts links_between(const LinkCounts& links, int ranks, int stride) {
  LinkCounts part(static_cast<std::size_t>(ranks), std::vector<int>(static_cast<std::size_t>(ranks), 0));
  for (std::size_t i = 0; i < part.size(); ++i)
    for (std::size_t j = 0; j < part.size(); ++j)
      part[i][j] = links.at(i * static_cast<std::size_t>(stride)).at(j * static_cast<std::size_t>(stride));
  return part;
}

bool are_joined(const LinkCounts& links) {
  std::vector<std::size_t> reached{0};
  std::vector<bool> seen(links.size());
  if (!seen.empty()) seen[0] = true;
  for (std::size_t i = 0; i < reached.size() && !seen.empty(); ++i)
    for (std::size_t to = 0; to < links.size(); ++to)
      if (links[reached[i]][to] > 0 && !seen[to]) seen[to] = true, reached.push_back(to);
  return reached.size() >= links.size();
}

int disjoint_rings(const LinkCounts& links) {
  static std::mutex mutex;
  static std::map<LinkCounts, int> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(links);
  return found != known.end() ? found->second : known.emplace(links, search_rings(links)).first->second;
}

}  // namespace ridgeline
