// Events of a profiler's trace and everything that is read of them: categories and names of every year, numbers in
// quotes, what is left out and what is refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sim/trace/json_pieces.h"
#include "sim/trace/profiler/profiler_events.h"
#include "sim/units/user_error.h"

namespace ridgeline::trace {
namespace {

std::string defects_of(const Defects& defects) {
  std::string text;
  for (const auto& [what, times] : defects.counts) text += fmt::format("{}: {}\n", what, times);
  return text;
}

/// Reads events, one a line from the first line on.
struct ReadEvents {
  Defects defects;
  ProfilerEvents events;
  explicit ReadEvents(const std::vector<std::string>& lines, const std::string& device = "",
                      const std::string& distributed = "") {
    ProfilerEventReader reader("t.json", defects);
    std::int64_t number = 0;
    for (const std::string& line : lines) {
      const std::string padded = line + std::string(JsonPieces::kPadding, ' ');
      reader.event(std::string_view(padded).substr(0, line.size()), ++number);
    }
    if (!device.empty()) reader.device(device);
    if (!distributed.empty()) reader.distributed(distributed);
    events = reader.finish();
  }

  [[nodiscard]] std::string host(const HostEvent& e, bool named = true) const {
    return fmt::format("{}{}..{} thread {} process {} place {}", named ? events.names[e.name] + " " : "", e.begin,
                       e.end, e.thread, e.process, e.place);
  }
  /// A line for each event kept.
  [[nodiscard]] std::string text() const {
    constexpr const char* kKinds[] = {"kernel", "copy", "set"};
    std::string all;
    for (const OperatorEvent& e : events.operators)
      all += fmt::format("op {} id {} line {} {}\n", host(e), e.external_id, e.line, e.arguments);
    for (const RuntimeEvent& e : events.runtime)
      all += fmt::format("call {} correlation {} id {}\n", host(e), e.correlation, e.external_id);
    for (const GpuEvent& e : events.gpu) {
      all += fmt::format("{} {} {}..{} correlation {} id {} stream {} blocks {} down {} bytes {} device {} place {}",
                         kKinds[static_cast<int>(e.kind)], events.names[e.name], e.begin, e.end, e.correlation,
                         e.external_id, e.stream, e.blocks, e.blocks_down, e.bytes, e.device, e.place);
      if (!e.message.name.empty())
        all += fmt::format(" {} of {} sent {} received {} ranks {}", e.message.name, e.message.type, e.message.sent,
                           e.message.received, e.message.ranks);
      all += "\n";
    }
    for (const HostEvent& e : events.annotations) all += "mark " + host(e) + "\n";
    for (const HostEvent& e : events.overheads) all += "overhead " + host(e, false) + "\n";
    for (const MemoryEvent& e : events.memory)
      all += fmt::format("memory {} allocated {} reserved {} place {}\n", e.at, e.allocated, e.reserved, e.place);
    return all;
  }
};

std::string refusal_of(const std::vector<std::string>& lines) {
  try {
    const ReadEvents read(lines);
    return "read";
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(WorkedEvents, EverythingThatIsReadOfOne) {
  const ReadEvents read({
      R"({"ph":"X","cat":"cpu_op","name":"aten::mm","pid":3,"tid":4,"ts":110,"dur":30,"args":{"External id":7,"x":[1]}})",
      R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":3,"tid":4,"ts":115,"dur":5,"args":{"correlation":9,"External id":7}})",
      R"({"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":20,"ts":130.5,"dur":2.25,"args":{"stream":21,"device":2,"correlation":9,"External id":7,"grid":[3,5,7]}})",
      R"({"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD","pid":0,"tid":20,"ts":140,"dur":1,"args":{"correlation":10,"bytes":4096}})",
      R"({"ph":"X","cat":"gpu_memset","name":"Memset","pid":0,"tid":20,"ts":150,"dur":1,"args":{"stream":0,"correlation":11,"Bytes":64,"external id":8}})",
      R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":3,"tid":4,"ts":100,"dur":90})",
      R"({"ph":"X","cat":"overhead","name":"Buffer Flush","pid":5,"tid":6,"ts":160,"dur":3})",
      R"({"ph":"i","name":"[memory]","ts":120,"args":{"Total Allocated":1024,"Total Reserved":2048,"Device Type":1}})",
      R"({"ph":"X","cat":"kernel","name":"nccl","pid":0,"tid":20,"ts":170,"dur":4,"args":{"grid":[2,3],"Collective name":"allreduce","dtype":"BFloat16","In msg nelems":12,"Out msg nelems":34,"Group size":8}})",
  });
  EXPECT_EQ(read.text(),
            "op aten::mm 10..40 thread 4 process 3 place 1 id 7 line 1 {\"External id\":7,\"x\":[1]}\n"
            "call cudaLaunchKernel 15..20 thread 4 process 3 place 2 correlation 9 id 7\n"
            "kernel gemm 30.5..32.75 correlation 9 id 7 stream 21 blocks 105 down 5 bytes 0 device 2 place 3\n"
            "copy Memcpy HtoD 40..41 correlation 10 id -1 stream 20 blocks 0 down 0 bytes 4096 device 0 place 4\n"
            "set Memset 50..51 correlation 11 id 8 stream 0 blocks 0 down 0 bytes 64 device 0 place 5\n"
            "kernel nccl 70..74 correlation -1 id -1 stream 20 blocks 0 down 3 bytes 0 device 0 place 9 allreduce of "
            "BFloat16 sent 12 received 34 ranks 8\n"
            "mark ProfilerStep#1 0..90 thread 4 process 3 place 6\n"
            "overhead 60..63 thread 6 process 5 place 7\n"
            "memory 20 allocated 1024 reserved 2048 place 8\n");
  EXPECT_EQ(defects_of(read.defects), "");
  EXPECT_FALSE(read.events.hip);
  EXPECT_EQ(read.events.toolkit, 0.0);
  EXPECT_EQ(read.events.ranks, 1u);
  EXPECT_EQ(read.events.world, 0);
  EXPECT_EQ(read.events.gpu_name, "");
}

TEST(WorkedEvents, CategoriesOfEveryYear) {
  const auto kept_as = [](const std::string& category, const std::string& name = "n", const std::string& phase = "X") {
    const std::string text =
        ReadEvents({fmt::format(R"({{"ph":"{}","cat":"{}","name":"{}","ts":1,"dur":1,"args":{{"Total Allocated":1}}}})",
                                phase, category, name)})
            .text();
    return text.substr(0, text.find(' '));
  };
  for (const char* category : {"cpu_op", "Operator", "operator"}) EXPECT_EQ(kept_as(category), "op") << category;
  for (const char* category : {"cuda_runtime", "cuda_driver", "Runtime", "runtime", "hip_runtime"})
    EXPECT_EQ(kept_as(category), "call") << category;
  for (const char* category : {"kernel", "Kernel"}) EXPECT_EQ(kept_as(category), "kernel") << category;
  for (const char* category : {"gpu_memcpy", "Memcpy"}) EXPECT_EQ(kept_as(category), "copy") << category;
  for (const char* category : {"gpu_memset", "Memset"}) EXPECT_EQ(kept_as(category), "set") << category;
  EXPECT_EQ(kept_as("user_annotation"), "mark");
  EXPECT_EQ(kept_as("overhead"), "overhead");
  EXPECT_EQ(kept_as("python_function"), "");
  EXPECT_EQ(kept_as("cpu_op", "n", "B"), "");
  EXPECT_EQ(kept_as("cpu_op", "[memory]", "i"), "memory");
  EXPECT_EQ(kept_as("cpu_op", "n", "i"), "");
  // Until PyTorch 1.9 marks stood among the operators.
  EXPECT_EQ(kept_as("cpu_op", "ProfilerStep#3"), "mark");
  EXPECT_EQ(kept_as("cpu_op", "Optimizer.step#SGD.step"), "mark");
  EXPECT_EQ(kept_as("cpu_op", "Optimizer.zero_grad"), "op");
  EXPECT_EQ(kept_as("cuda_runtime", "ProfilerStep#3"), "call");
}

TEST(WorkedEvents, NamesDateTheToolkitAndTheMaker) {
  const auto of = [](const std::string& category, const std::string& name) {
    return ReadEvents({fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","ts":1,"dur":1}})", category, name)});
  };
  EXPECT_EQ(of("kernel", "k").events.toolkit, 0.0);
  EXPECT_EQ(of("Kernel", "k").events.toolkit, 11.7);
  EXPECT_EQ(of("kernel", "f<at::detail::Array<char*, 3>>").events.toolkit, 11.8);
  EXPECT_EQ(of("Kernel", "f<at::detail::Array<char*, 3>>").events.toolkit, 11.7);
  EXPECT_EQ(of("cpu_op", "f<at::detail::Array<char*, 3>>").events.toolkit, 0.0);
  EXPECT_EQ(of("Operator", "k").events.toolkit, 0.0);
  EXPECT_TRUE(of("runtime", "hipLaunchKernel").events.hip);
  EXPECT_FALSE(of("kernel", "hipLaunchKernel").events.hip);
  EXPECT_FALSE(of("runtime", "cudaLaunchKernel").events.hip);
}

TEST(WorkedEvents, NumbersMayStandInQuotesAndWordsForNumbers) {
  const ReadEvents read({
      R"({"ph":"X","cat":"kernel","name":"a","pid":"0","tid":"7","ts":"10","dur":"2.5","args":{"correlation":"9","grid":["2","3","x",9]}})",
      R"({"ph":"X","cat":"kernel","name":"b","tid":7,"ts":20,"dur":1,"args":{"correlation":null,"stream":"none","grid":[2,3,4,9],"bytes":-5}})",
      R"({"ph":"X","cat":"kernel","name":"c","tid":7,"ts":30,"dur":1,"args":{"grid":5,"device":1}})",
      R"({"ph":"X","cat":"kernel","name":"d\"\u00e4","tid":7,"ts":40,"dur":1,"args":[1]})",
      R"({"ph":"X","cat":"kernel","name":"e","tid":7,"ts":50,"dur":1,"args":{"In msg nelems":-3,"Collective name":"x","Out msg nelems":"y"}})",
  });
  EXPECT_EQ(read.text(),
            "kernel a 0..2.5 correlation 9 id -1 stream 7 blocks 0 down 3 bytes 0 device 0 place 1\n"
            "kernel b 10..11 correlation -1 id -1 stream 7 blocks 24 down 3 bytes 0 device 0 place 2\n"
            "kernel c 20..21 correlation -1 id -1 stream 7 blocks 0 down 0 bytes 0 device 1 place 3\n"
            "kernel d\"ä 30..31 correlation -1 id -1 stream 7 blocks 0 down 0 bytes 0 device 0 place 4\n"
            "kernel e 40..41 correlation -1 id -1 stream 7 blocks 0 down 0 bytes 0 device 0 place 5 x of  sent 0 "
            "received 0 ranks 0\n");
  // Two words are two threads, one word is one.
  const ReadEvents words({R"({"ph":"X","cat":"cpu_op","name":"a","tid":"thread 5","ts":1,"dur":1})",
                          R"({"ph":"X","cat":"cpu_op","name":"b","tid":"thread 6","ts":2,"dur":1})",
                          R"({"ph":"X","cat":"cpu_op","name":"c","tid":"thread 5","ts":3,"dur":1})",
                          R"({"ph":"X","cat":"cpu_op","name":"d","tid":[1],"ts":4,"dur":1})"});
  const auto& operators = words.events.operators;
  EXPECT_NE(operators[0].thread, operators[1].thread);
  EXPECT_EQ(operators[0].thread, operators[2].thread);
  EXPECT_GE(operators[0].thread, 0);
  EXPECT_EQ(operators[3].thread, 0);
}

TEST(WorkedEvents, OrderIsThatOfBeginsAndTheLongerOneIsOutside) {
  const ReadEvents read({
      R"({"ph":"X","cat":"cpu_op","name":"late","ts":30,"dur":1})",
      R"({"ph":"X","cat":"cpu_op","name":"inside","ts":20,"dur":1})",
      R"({"ph":"X","cat":"cpu_op","name":"outside","ts":20,"dur":5})",
      R"({"ph":"i","name":"[memory]","ts":29,"args":{"Total Allocated":2}})",
      R"({"ph":"i","name":"[memory]","ts":25,"args":{"Total Allocated":1}})",
      R"({"ph":"i","name":"[memory]","ts":25,"args":{"Total Allocated":0}})",
  });
  EXPECT_EQ(read.text(),
            "op outside 0..5 thread 0 process 0 place 3 id -1 line 3 \n"
            "op inside 0..1 thread 0 process 0 place 2 id -1 line 2 \n"
            "op late 10..11 thread 0 process 0 place 1 id -1 line 1 \n"
            "memory 5 allocated 1 reserved -1 place 5\n"
            "memory 5 allocated 0 reserved -1 place 6\n"
            "memory 9 allocated 2 reserved -1 place 4\n");
}

// Samples of the host's memory, and those without a total, are no samples of the GPU's.
TEST(WorkedEvents, SamplesOfTheMemory) {
  const auto kept = [](const std::string& arguments) {
    return !ReadEvents({R"({"ph":"i","name":"[memory]","ts":1,"args":{)" + arguments + "}}"}).events.memory.empty();
  };
  EXPECT_TRUE(kept(R"("Total Allocated":0,"Device Type":1)"));
  EXPECT_TRUE(kept(R"("Total Allocated":5)"));
  EXPECT_FALSE(kept(R"("Total Allocated":5,"Device Type":0)"));
  EXPECT_FALSE(kept(R"("Total Reserved":5)"));
  EXPECT_FALSE(kept(R"("Total Allocated":-1)"));
}

TEST(WorkedEvents, WhatIsMissingIsCounted) {
  const ReadEvents read({
      R"({"ph":"X","cat":"cpu_op","name":"a","dur":1})",
      R"({"ph":"X","cat":"cpu_op","name":"b","ts":5})",
      R"({"ph":"X","cat":"cpu_op","name":"c","ts":6,"dur":-4})",
      R"({"ph":"X","cat":"kernel","name":"d","ts":7,"dur":0})",
      R"({"ph":"X","cat":"gpu_memset","name":"e","ts":8,"dur":0.5})",
      R"({"ph":"X","cat":"unknown","name":"f"})",
      R"({"ph":"X","cat":"cpu_op","name":"g","ts":9,"dur":0})",
      R"({"ph":"X","cat":"cpu_op","name":"h "quoted"","ts":9,"dur":1})",
      R"([1])",
      R"({"ph":5,"cat":"cpu_op","name":"i","ts":9,"dur":1})",
      R"({"ph":"X","cat":"cpu_op","name":"j\q","ts":9,"dur":1})",
  });
  EXPECT_EQ(read.text(),
            "op c 0..0 thread 0 process 0 place 3 id -1 line 3 \n"
            "op g 3..3 thread 0 process 0 place 7 id -1 line 7 \n"
            "kernel d 1..1 correlation -1 id -1 stream 0 blocks 0 down 0 bytes 0 device 0 place 4\n"
            "set e 2..2.5 correlation -1 id -1 stream 0 blocks 0 down 0 bytes 0 device 0 place 5\n");
  EXPECT_EQ(defects_of(read.defects),
            "GPU activities of no duration: 1\n"
            "events that are not valid JSON, left out: 4\n"
            "events with a negative duration, taken as 0: 1\n"
            "events without a duration, left out: 1\n"
            "events without a time, left out: 1\n");
}

// Ten, and one of every hundred events.
TEST(WorkedEvents, AFewBrokenEventsArePassedOver) {
  const auto with = [](std::size_t broken, std::size_t whole) {
    std::vector<std::string> lines(whole, R"({"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":1})");
    lines.insert(lines.end(), broken, "{broken");
    return refusal_of(lines);
  };
  EXPECT_EQ(with(10, 0), "read");
  EXPECT_EQ(with(11, 1), "t.json:2: not valid JSON, as are 11 of 12 events: not a trace of PyTorch's profiler");
  EXPECT_EQ(with(11, 89), "read");
  EXPECT_EQ(with(12, 89), "t.json:90: not valid JSON, as are 12 of 101 events: not a trace of PyTorch's profiler");
}

TEST(WorkedEvents, TimesThatAreNoneAreRefused) {
  const auto of = [](const std::string& at, const std::string& duration) {
    return refusal_of({fmt::format(R"({{"ph":"X","cat":"cpu_op","name":"a","ts":{},"dur":{}}})", at, duration)});
  };
  EXPECT_EQ(of("1", "1"), "read");
  EXPECT_EQ(of("null", "1"), "t.json:1: \"ts\" of 'a' is not a finite number");
  EXPECT_EQ(of("1", "null"), "t.json:1: \"dur\" of 'a' is not a finite number");
  EXPECT_EQ(of("\"1x\"", "1"), "t.json:1: \"ts\" of 'a' is not a finite number");
  EXPECT_EQ(of("\"1e999\"", "1"), "t.json:1: \"ts\" of 'a' is not a finite number");
  EXPECT_EQ(of("1e19", "1"), "read");
  EXPECT_EQ(of("-1e19", "1"), "read");
  EXPECT_EQ(of("1.1e19", "1"), "t.json:1: \"ts\" of 'a' is no time: 1.1e+19");
  EXPECT_EQ(of("-1.1e19", "1"), "t.json:1: \"ts\" of 'a' is no time: -1.1e+19");
  EXPECT_EQ(of("1", "1e13"), "read");
  EXPECT_EQ(of("1", "1.1e13"), "t.json:1: \"dur\" of 'a' is no duration: 11000000000000");
  EXPECT_EQ(refusal_of({R"({"ph":"X","cat":"unknown","name":"a","ts":null})"}), "read");
}

TEST(WorkedEvents, DevicesAndRanksOfTheJob) {
  const std::vector<std::string> one{R"({"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":1})"};
  const ReadEvents read(one, R"({"id":0,"name":"NVIDIA H200","totalGlobalMem":150000000000})", R"({"world_size":8})");
  EXPECT_EQ(read.events.gpu_name, "NVIDIA H200");
  EXPECT_EQ(read.events.gpu_memory, 150000000000);
  EXPECT_EQ(read.events.world, 8);
  const ReadEvents other(one, R"({"id":0,"totalGlobalMem":5})", R"({"world_size":0})");
  EXPECT_EQ(other.events.gpu_name, "");
  EXPECT_EQ(other.events.gpu_memory, 0);
  EXPECT_EQ(other.events.world, 0);
  EXPECT_EQ(ReadEvents(one, "broken", R"({"world_size":1})").events.world, 1);
  EXPECT_EQ(ReadEvents(one, R"({"name":"A"})", "broken").events.gpu_memory, 0);
  // The first device that has a name.
  Defects defects;
  ProfilerEventReader reader("t.json", defects);
  reader.device(R"({"totalGlobalMem":1})");
  reader.device(R"({"name":"first","totalGlobalMem":2})");
  reader.device(R"({"name":"second","totalGlobalMem":3})");
  const ProfilerEvents events = reader.finish();
  EXPECT_EQ(events.gpu_name, "first");
  EXPECT_EQ(events.gpu_memory, 2);
}

TEST(WorkedEvents, NamesAreKeptOnce) {
  NamePool names;
  EXPECT_EQ(names.add("a"), 0u);
  EXPECT_EQ(names.add("b"), 1u);
  EXPECT_EQ(names.add("a"), 0u);
  EXPECT_EQ(names[1], "b");
}

}  // namespace
}  // namespace ridgeline::trace
