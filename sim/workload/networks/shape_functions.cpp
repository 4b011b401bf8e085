// Operations of a program that show or move elements: views, parts, joins, positions.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/workload/aten/images.h"
#include "sim/workload/aten/pieces.h"
#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/regroup.h"
#include "sim/workload/networks/program_functions.h"
#include "sim/workload/networks/program_network.h"

namespace ridgeline::networks {
namespace {

namespace aten = eager::aten;
namespace f = families;

/// Sizes of as many elements as x has; one of them may be -1.
Dims sizes_for(const CallArguments& a, const Tensor& x) {
  Dims sizes = a.dims("sizes");
  std::int64_t known = 1;
  int open = -1;
  for (int i = 0; i < sizes.rank(); ++i) {
    if (sizes[i] == -1 && open < 0) open = i;
    else known *= sizes[i];
  }
  if (open >= 0 && known > 0) sizes[open] = x.elements() / known;
  if (known <= 0 || sizes.product() != x.elements())
    a.fail(fmt::format("{} has {} elements, which {} does not", text_of(x.sizes), x.elements(), text_of(sizes)));
  return sizes;
}

ProgramValue view(ProgramNetwork& n, const CallArguments& a) {
  const Tensor& x = a.tensor("x");
  const Dims sizes = sizes_for(a, x);
  a.require(!aten::needs_copy(x, sizes),
            fmt::format("no view shows {} as {}, since its elements lie apart: reshape copies them", text_of(x.sizes),
                        text_of(sizes)));
  return f::view(n.session(), x, sizes);
}

ProgramValue reshaped(ProgramNetwork& n, const Tensor& x, const Dims& sizes) {
  n.session().recorder.host(aten::needs_copy(x, sizes) ? HostClass::contiguous : HostClass::view);
  return aten::reshape(n.session(), x, sizes);
}
ProgramValue reshape(ProgramNetwork& n, const CallArguments& a) {
  return reshaped(n, a.tensor("x"), sizes_for(a, a.tensor("x")));
}
ProgramValue flatten(ProgramNetwork& n, const CallArguments& a) {
  const Tensor& x = a.tensor("x");
  const int first = a.dimension("first", x, 0), last = a.dimension("last", x, -1);
  Dims sizes;
  for (int i = 0; i < x.sizes.rank(); ++i) {
    if (i <= first || i > last) sizes.push_back(x.sizes[i]);
    else sizes[first] *= x.sizes[i];
  }
  return reshaped(n, x, sizes);
}

ProgramValue transpose(ProgramNetwork& n, const CallArguments& a) {
  const Tensor& x = a.tensor("x");
  return f::transpose(n.session(), x, a.dimension("a", x, 0), a.dimension("b", x, 1));
}
ProgramValue permute(ProgramNetwork& n, const CallArguments& a) {
  const Tensor& x = a.tensor("x");
  const Dims order = a.dims("order");
  std::array<bool, Dims::kMost> seen{};
  bool fits = order.rank() == x.sizes.rank();
  for (int i = 0; fits && i < order.rank(); ++i) {
    fits = order[i] >= 0 && order[i] < order.rank() && !seen[static_cast<std::size_t>(order[i])];
    if (fits) seen[static_cast<std::size_t>(order[i])] = true;
  }
  a.require(fits, fmt::format("{} is no order of the dimensions of {}", text_of(order), text_of(x.sizes)));
  n.session().recorder.host(HostClass::transpose);
  return aten::permute(n.session(), x, order);
}
ProgramValue contiguous(ProgramNetwork& n, const CallArguments& a) { return f::contiguous(n.session(), a.tensor("x")); }

ProgramValue unsqueeze(ProgramNetwork& n, const CallArguments& a) {
  const Tensor& x = a.tensor("x");
  const std::int64_t given = a.whole("dim"), rank = x.sizes.rank(), at = given < 0 ? given + rank + 1 : given;
  a.require(at >= 0 && at <= rank && rank < Dims::kMost,
            fmt::format("dimension {} of a tensor {}", given, text_of(x.sizes)));
  n.session().recorder.host(HostClass::view);
  return aten::unsqueeze(n.session(), x, static_cast<int>(at));
}
ProgramValue squeeze(ProgramNetwork& n, const CallArguments& a) {
  const Tensor& x = a.tensor("x");
  const int at = a.dimension("dim", x, -1);
  a.require(x.sizes[at] == 1, fmt::format("dimension {} of {} is not 1", at, text_of(x.sizes)));
  Dims sizes;
  for (int i = 0; i < x.sizes.rank(); ++i)
    if (i != at) sizes.push_back(x.sizes[i]);
  return f::view(n.session(), x, sizes);
}
ProgramValue expand(ProgramNetwork& n, const CallArguments& a) {
  const Tensor& x = a.tensor("x");
  Dims sizes = a.dims("sizes");
  const int more = sizes.rank() - x.sizes.rank();
  bool fits = more >= 0;
  for (int i = 0; fits && i < sizes.rank(); ++i) {
    if (i < more) {
      fits = sizes[i] > 0;
      continue;
    }
    if (sizes[i] == -1) sizes[i] = x.sizes[i - more];
    fits = x.sizes[i - more] == sizes[i] || x.sizes[i - more] == 1;
  }
  a.require(fits, fmt::format("{} does not expand to {}", text_of(x.sizes), text_of(sizes)));
  n.session().recorder.host(HostClass::view);
  return aten::expand(n.session(), x, sizes);
}

std::shared_ptr<ProgramList> tensors_of(std::initializer_list<Tensor> tensors) {
  auto list = std::make_shared<ProgramList>();
  for (const Tensor& tensor : tensors) list->items.emplace_back(tensor);
  return list;
}

/// Two or three parts are one node; four and six, two of them.
std::shared_ptr<ProgramList> equal_parts(eager::Eager& eager, const Tensor& x, std::int64_t parts) {
  if (parts == 2) {
    const auto two = aten::split_last<2>(eager, x);
    return tensors_of({two[0], two[1]});
  }
  if (parts == 3) {
    const auto three = aten::split_last<3>(eager, x);
    return tensors_of({three[0], three[1], three[2]});
  }
  auto all = std::make_shared<ProgramList>();
  const std::shared_ptr<ProgramList> halves = equal_parts(eager, x, 2);
  for (const ProgramValue& half : halves->items) {
    const std::shared_ptr<ProgramList> of_half = equal_parts(eager, std::get<Tensor>(half), parts / 2);
    all->items.insert(all->items.end(), of_half->items.begin(), of_half->items.end());
  }
  return all;
}

ProgramValue chunk(ProgramNetwork& n, const CallArguments& a) {
  const Tensor& x = a.tensor("x");
  const std::int64_t parts = a.whole("parts");
  a.require(a.dimension("dim", x, -1) == x.sizes.rank() - 1, "along the last dimension alone");
  a.require(parts == 2 || parts == 3 || parts == 4 || parts == 6,
            fmt::format("{} parts; expected 2, 3, 4 or 6", parts));
  a.require(x.sizes.last() % parts == 0, fmt::format("{} parts of {}", parts, text_of(x.sizes)));
  n.session().recorder.host(HostClass::split);
  return equal_parts(n.session(), x, parts);
}

ProgramValue split(ProgramNetwork& n, const CallArguments& a) {
  const Tensor& x = a.tensor("x");
  const std::vector<std::int64_t> widths = a.wholes("widths");
  a.require(widths.size() == 2 || widths.size() == 3, fmt::format("{} widths; expected 2 or 3", widths.size()));
  std::int64_t total = 0;
  for (const std::int64_t width : widths) {
    a.require(width > 0 && width <= x.sizes.last(), fmt::format("a part of {}", width));
    total += width;
  }
  a.require(total == x.sizes.last(), fmt::format("parts of {} together, of {}", total, text_of(x.sizes)));
  n.session().recorder.host(HostClass::split);
  Tensor one, two, three;
  if (widths.size() == 2) {
    aten::split_last(n.session(), x, {widths[0], widths[1]}, {&one, &two});
    return tensors_of({one, two});
  }
  aten::split_last(n.session(), x, {widths[0], widths[1], widths[2]}, {&one, &two, &three});
  return tensors_of({one, two, three});
}

ProgramValue unbind(ProgramNetwork& n, const CallArguments& a) {
  const Tensor& x = a.tensor("x");
  a.require(x.sizes.rank() >= 2 && (x.sizes[0] == 2 || x.sizes[0] == 3),
            fmt::format("a tensor {}; expected 2 or 3 along its first dimension", text_of(x.sizes)));
  n.session().recorder.host(HostClass::split);
  auto list = std::make_shared<ProgramList>();
  for (const Tensor& part : aten::unbind(n.session(), x)) list->items.emplace_back(part);
  return list;
}

ProgramValue slice(ProgramNetwork& n, const CallArguments& a) {
  const Tensor& x = a.tensor("x");
  const int dim = a.dimension("dim", x, 0);
  const std::int64_t first = a.whole("first"), last = a.whole("last", x.sizes[dim]);
  a.require(first >= 0 && first < last && last <= x.sizes[dim],
            fmt::format("{} to {} of dimension {} of {}", first, last, dim, text_of(x.sizes)));
  n.session().recorder.host(HostClass::view);
  return aten::slice(n.session(), x, dim, last - first);
}
ProgramValue select(ProgramNetwork& n, const CallArguments& a) {
  const Tensor& x = a.tensor("x");
  const int dim = a.dimension("dim", x, 0);
  a.require(a.whole("number") < x.sizes[dim], fmt::format("number {} of {}", a.whole("number"), text_of(x.sizes)));
  n.session().recorder.host(HostClass::view);
  return aten::select(n.session(), x, dim);
}

ProgramValue cat(ProgramNetwork& n, const CallArguments& a) {
  const std::vector<Tensor> parts = a.tensors("parts");
  a.require(!parts.empty() && parts.size() <= 3, fmt::format("{} tensors; expected 1 to 3", parts.size()));
  const int dim = a.dimension("dim", parts[0], 0);
  for (const Tensor& part : parts)
    for (int i = 0; i < parts[0].sizes.rank(); ++i)
      a.require(part.sizes.rank() == parts[0].sizes.rank() && (i == dim || part.sizes[i] == parts[0].sizes[i]),
                fmt::format("tensors {} and {} do not fit", text_of(parts[0].sizes), text_of(part.sizes)));
  n.session().recorder.host(HostClass::concatenate);
  if (parts.size() == 1) return aten::copied(n.session(), parts[0]);
  if (parts.size() == 2) return aten::join(n.session(), {&parts[0], &parts[1]}, dim);
  return aten::join(n.session(), {&parts[0], &parts[1], &parts[2]}, dim);
}

/// An order of each row by chance: random numbers, sorted.
ProgramValue shuffled(ProgramNetwork& n, const CallArguments& a) {
  eager::Eager& eager = n.session();
  const Dims sizes{a.count("rows"), a.count("count")};
  eager.recorder.host(HostClass::pointwise, 3);
  const Tensor random = eager.empty(sizes, DType::fp32), sorted = eager.empty(sizes, DType::fp32),
               order = eager.empty(sizes, DType::int64);
  aten::pointwise(eager, PointwiseFunction::other, {}, random);
  eager.recorder.op(Sort{DType::fp32, sizes[0], sizes[1], 0, 0}, {&random}, {&sorted, &order});
  return order;
}
/// Rows of x [batch, rows, width] by an index [batch, count], which is copied to every number of a row and kept.
ProgramValue gather(ProgramNetwork& n, const CallArguments& a) {
  eager::Eager& eager = n.session();
  const Tensor &x = a.tensor("x"), &index = a.tensor("index");
  a.require(x.sizes.rank() == 3 && index.sizes.rank() == 2 && index.sizes[0] == x.sizes[0],
            fmt::format("rows {} by an index {}; expected [batch, rows, width] and [batch, count]", text_of(x.sizes),
                        text_of(index.sizes)));
  const Dims sizes{x.sizes[0], index.sizes[1], x.sizes[2]};
  eager.recorder.host(HostClass::pointwise, 2);
  const Tensor every = eager.empty(sizes, DType::int64);
  aten::pointwise(eager, PointwiseFunction::cast, {&index}, every);
  return aten::gathered_last(eager, x, every, sizes);
}

ProgramValue size(ProgramNetwork&, const CallArguments& a) {
  return a.tensor("x").sizes[a.dimension("dim", a.tensor("x"), 0)];
}
ProgramValue arange(ProgramNetwork& n, const CallArguments& a) {
  return aten::arange(n.session(), a.count("count"), DType::int64);
}
/// A kernel that fills a fresh tensor: zeros, ones, random numbers.
template <PointwiseFunction Function>
ProgramValue filled(ProgramNetwork& n, const CallArguments& a) {
  const Dims sizes = a.dims("sizes");
  a.require(sizes.product() > 0, fmt::format("a tensor {}", text_of(sizes)));
  n.session().recorder.host(HostClass::pointwise);
  const Tensor result = n.session().empty(sizes, n.weight_type());
  aten::pointwise(n.session(), Function, {}, result);
  return result;
}

constexpr ProgramFunction kShapes[] = {
    {"view", "x, *sizes", view},
    {"reshape", "x, *sizes", reshape},
    {"flatten", "x, first=0, last=-1", flatten},
    {"transpose", "x, a, b", transpose},
    {"permute", "x, *order", permute},
    {"contiguous", "x", contiguous},
    {"unsqueeze", "x, dim", unsqueeze},
    {"squeeze", "x, dim=-1", squeeze},
    {"expand", "x, *sizes", expand},
    {"chunk", "x, parts, dim=-1", chunk},
    {"split", "x, widths", split},
    {"unbind", "x", unbind},
    {"slice", "x, dim, first, last=None", slice},
    {"select", "x, dim, number=0", select},
    {"cat", "parts, dim=0", cat},
    {"shuffled", "rows, count", shuffled},
    {"gather", "x, index", gather},
    {"size", "x, dim", size},
    {"arange", "count", arange},
    {"zeros", "*sizes", filled<PointwiseFunction::fill>},
    {"randn", "*sizes", filled<PointwiseFunction::random>},
};

}  // namespace

std::span<const ProgramFunction> shape_functions() { return kShapes; }

}  // namespace ridgeline::networks
