// Op traces of every way to train and use a network are written and read back whole; lines at the edge of what is
// allowed are read, those beyond it refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/trace/op_trace/read_op_trace.h"
#include "sim/trace/op_trace/write_op_trace.h"
#include "sim/units/user_error.h"
#include "tests/support/ways_to_train.h"

namespace ridgeline::trace {
namespace {

using testing_support::WaysToTrain;
using testing_support::WayToTrain;

template <typename List, typename Words>
void expect_equal(const List& read, const List& written, const char* what, const Words& words) {
  ASSERT_EQ(read.size(), written.size()) << what;
  for (std::size_t i = 0; i < read.size(); ++i) ASSERT_EQ(words(read[i]), words(written[i])) << what << ' ' << i;
}

void expect_same_run(const OpTrace& read, const OpTrace& written) {
  expect_equal(read.storages, written.storages, "storage", [](const Storage& s) {
    return fmt::format("{} {} {} {} {}", s.bytes, static_cast<int>(s.category), s.layer, s.stream, s.module);
  });
  expect_equal(read.operands, written.operands, "operand",
               [](const Operand& o) { return std::pair(o.storage, o.bytes); });
  expect_equal(read.records, written.records, "record", [](const Record& r) {
    return fmt::format("{} {} {} {}", static_cast<int>(r.kind), static_cast<int>(r.host_class), r.stream, r.index);
  });
  expect_equal(read.calls, written.calls, "call", [](const Call& c) {
    return fmt::format("{} {} {} {} {} {} {}", c.operands_begin, c.inputs, c.outputs, static_cast<int>(c.phase),
                       c.stream, c.layer, c.module);
  });
  for (std::size_t i = 0; i < read.calls.size(); ++i)
    ASSERT_TRUE(read.ops[read.calls[i].op] == written.ops[written.calls[i].op])
        << name_of(written.ops[written.calls[i].op]);
  const auto range = [](const StepRange& r) { return std::pair(r.begin, r.end); };
  expect_equal(read.steps, written.steps, "step", range);
  expect_equal(read.repeats, written.repeats, "repeat",
               [&](const RepeatedRange& r) { return std::tuple(r.records.begin, r.records.end, r.times); });
  expect_equal(read.modules, written.modules, "module",
               [](const ModuleName& m) { return std::pair(m.name, m.parent); });
  EXPECT_EQ(read.events, written.events);
  EXPECT_EQ(read.parameters, written.parameters);
  EXPECT_EQ(read.model_flops, written.model_flops);
}

TEST(OpTraceEveryWay, ReadsBackWhole) {
  std::size_t repeated = 0;
  for (WayToTrain way : WaysToTrain().all()) {
    SCOPED_TRACE(way.name);
    if (!way.training.inference && !way.training.parallel.pipelined()) way.training.gradient_accumulation = 12;
    const OpTrace run = way.run();
    RecordingInfo info{.producer = "test", .ranks = way.training.parallel};
    const Recording back = parse_op_trace(op_trace_lines(info, run), "memory");
    expect_same_run(back.trace, run);
    repeated += run.repeats.size();
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(repeated, 20u);
}

constexpr const char* kLineOfHeader = R"({"ridgeline":"op-trace","version":1,"parameters":0})";
/// The mistake that is found in these lines within a step, "": none.
std::string mistake_in(const std::vector<std::string>& lines, const std::string& before = "") {
  std::string text = std::string(kLineOfHeader) + "\n" + before +
                     R"({"record":"storage","id":0,"bytes":8,"category":"weights"})"
                     "\n"
                     R"({"record":"module","name":"a"})"
                     "\n"
                     R"({"record":"step"})"
                     "\n";
  for (const std::string& line : lines) text += line + "\n";
  text += R"({"record":"end"})"
          "\n";
  try {
    parse_op_trace(text, "f");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(OpTraceEveryWay, LinesAtTheEdgeAreReadAndThoseBeyondItRefused) {
  const auto with = [](const char* key, std::int64_t value) {
    return fmt::format(R"({{"record":"storage","id":1,"bytes":8,"category":"inputs","{}":{}}})", key, value);
  };
  const auto host = [](std::int64_t times) {
    return fmt::format(R"({{"record":"host","class":"linear","times":{}}})", times);
  };
  const auto collective = [](std::int64_t ranks) {
    return fmt::format(
        R"({{"record":"op","id":0,"kind":"collective","collective":"all_gather","group":"data","type":"bf16","ranks":{},"bytes":8}})",
        ranks);
  };
  const auto event = [](const char* kind, int number) {
    return fmt::format(R"({{"record":"{}","event":{},"stream":1}})", kind, number);
  };
  using Lines = std::vector<std::string>;
  struct Edge {
    Lines read, refused;
  };
  const std::vector<Edge> edges{
      {{with("layer", -1)}, {with("layer", -2)}},
      {{with("layer", 32767)}, {with("layer", 32768)}},
      {{with("stream", 63)}, {with("stream", 64)}},
      {{with("module", 1)}, {with("module", 2)}},
      {{with("module", 0)}, {with("module", -1)}},
      {{host(1)}, {host(0)}},
      {{collective(1)}, {collective(0)}},
      {{collective(1 << 20)}, {collective((1 << 20) + 1)}},
      {{event("event", 0), event("wait_event", 0)}, {event("event", 0), event("wait_event", 1)}},
      {{event("event", 2), event("host_waits", 2)}, {event("event", 2), event("host_waits", 3)}},
      {{}, {event("wait_event", 0)}},
      {{R"({"record":"free","id":0})", R"({"record":"allocate","id":0})"},
       {R"({"record":"free","id":0})", R"({"record":"free","id":0})"}},
      {{}, {R"({"record":"free","id":1})"}},
      {{}, {R"({"record":"allocate","id":1})"}},
      {{host(1), R"({"record":"repeat","times":3})", host(1), R"({"record":"repeated"})"},
       {R"({"record":"repeat","times":3})", host(1), R"({"record":"repeated"})"}},
      {{host(1), R"({"record":"repeat","times":1})", host(1), R"({"record":"repeated"})"},
       {host(1), R"({"record":"repeat","times":0})", host(1), R"({"record":"repeated"})"}},
      {{}, {host(2), R"({"record":"repeat","times":3})", host(1), R"({"record":"repeated"})"}},
      {{}, {host(1), R"({"record":"repeat","times":3})", host(1)}},
      {{}, {R"({"record":"repeated"})"}},
      {{},
       {host(1), host(1), R"({"record":"repeat","times":3})", host(1), R"({"record":"repeat","times":3})",
        R"({"record":"repeated"})"}},
      {{},
       {host(1), R"({"record":"repeat","times":3})", host(1), R"({"record":"repeated"})",
        R"({"record":"repeat","times":3})", host(1), R"({"record":"repeated"})"}},
      {{R"({"record":"end"})", R"({"record":"step"})"}, {R"({"record":"step"})"}},
      {{}, {R"({"record":"end"})"}},
      {{R"({"record":"op","id":0,"kind":"memset","bytes":8})", R"({"record":"op","id":1,"kind":"memset","bytes":8})"},
       {R"({"record":"op","id":0,"kind":"memset","bytes":8})", R"({"record":"op","id":0,"kind":"memset","bytes":8})"}},
      {{R"({"record":"op","id":3,"kind":"memset","bytes":8})",
        R"({"record":"call","op":3,"in":[],"out":[[0,8]],"phase":"forward"})"},
       {R"({"record":"op","id":3,"kind":"memset","bytes":8})",
        R"({"record":"call","op":3,"in":[],"out":[[1,8]],"phase":"forward"})"}},
  };
  for (const Edge& edge : edges) {
    EXPECT_EQ(mistake_in(edge.read), "") << ::testing::PrintToString(edge.read);
    EXPECT_NE(mistake_in(edge.refused), "") << ::testing::PrintToString(edge.refused);
  }
}

}  // namespace
}  // namespace ridgeline::trace
