// Rings over the links of a mesh that no two share, as NCCL searches them.
#pragma once

#include <vector>

namespace ridgeline {

/// Links between each two of the GPUs: [gpus][gpus], symmetric.
using LinkCounts = std::vector<std::vector<int>>;

/// The part of `links` between GPUs 0, stride, 2 stride … of a group of `ranks`.
LinkCounts links_between(const LinkCounts& links, int ranks, int stride);

/// How many times a ring through all GPUs fits into the links, each link once in each direction: both ways around a
/// ring of three or more count, a ring of two needs both ways of its link. 0 where there is none. Of more than eight
/// GPUs what the links of the least linked one allow.
int disjoint_rings(const LinkCounts& links);

/// Whether each GPU reaches each other, over others too.
bool are_joined(const LinkCounts& links);

}  // namespace ridgeline
