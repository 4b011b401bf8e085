// The page of a prediction, row by row, worked out by hand from tests/support/made_prediction.h.
#include "sim/report/text/prediction_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/timing/kernel_profile.h"
#include "tests/support/made_prediction.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Scenario made_scenario() {
  Scenario s;
  s.title = "a question";
  s.gpu.name = "nvidia-made";
  s.gpu.power.limit = Watts{400};
  s.software.name = "a-software";
  s.training.micro_batch = 8;
  s.training.sequence_length = 512;
  s.training.precision = Precision::amp_fp16;
  return s;
}

std::string page_of(const Prediction& p, const Scenario& s = made_scenario()) {
  return prediction_text(s, p, Notes::folded);
}

// 160 samples/s at 350 W: 2.1875 J each. 1000 kernels less 96 and 48 are 856, 180 ms less 90 and 16 are 74.
TEST(PredictionText, EachRowSaysWhatThePredictionHas) {
  EXPECT_EQ(page_of(made_prediction()), R"(a made step
FITS: needs 12.75 of 40.00 GiB
nvidia-made: 8 x 512 tokens, amp-fp16 · analytic engine · a-software

  step time     200 ms (190 ms to 215 ms)   160 samples/s   81,920 tokens/s
  limited by    compute 40 %, dram 30 %, launches and host 11 %, latency 9 %, l2 7 %
  phases        forward 55.0 ms, backward 100 ms, clipping 4.50 ms, optimizer 19.9 ms
  kernels of    tensor contraction 110 ms, elementwise 34.5 ms, optimizer 20.0 ms, copy 15.0 ms
  GPU           1000 kernels, busy 180 ms (91 %), MFU 43 %
  host          120 ms of work, the GPU waits 12.0 ms for it (6 %); host-bound on one 1.6 times
                slower
  utilisation   kernels active 90 %, SMs with work 80 %, tensor cores 55 %, DRAM 35 %
  clock         1,410 MHz, limited by power: 400 W cost 5.00 ms
  step time =   math 90.0 ms + memory 70.0 ms - both at once 30.0 ms + neither 70.0 ms
  neither       50.0 ms in kernels, 8.00 ms in gaps, 12.0 ms waiting for the host (hidden: 108 ms)
  energy        70 J (60 J to 80 J), 350 W on average; 2.19 J a sample
  memory        10.00 GiB allocated, 11.00 GiB reserved, 12.50 GiB in nvidia-smi; fits in 40.00 GiB
  at the peak   weights 2.00 GiB   gradients 1.50 GiB   optimizer state 3.00 GiB
                activations 2.75 GiB   temporaries 0.50 GiB   workspaces 0.25 GiB
                cached 1.00 GiB
                reached in addmm of the backward, block 3

       time  share  count  kernel                       shape                        limited by
    90.0 ms   45 %     96  gemm_128x64                  4096x1024x1024               compute
    16.0 ms    8 %     48  layer_norm                   8x512x1024                   shared memory
    74.0 ms   37 %    856  all others
    20.0 ms   10 %         GPU idle: gaps between kernels, waiting for the host
)");
}

TEST(PredictionText, WhatASimulationSawInKernelsIsATableBelowThem) {
  Prediction p = made_prediction();
  auto profile = std::make_shared<KernelProfile>();
  profile->waves = 2.5, profile->achieved_occupancy = 0.25, profile->dram_read_bytes = 7e6;
  p.kernels[1].profile = profile;
  const std::string page = page_of(p);
  const std::size_t table = page.find("warps wait");
  ASSERT_NE(table, page.npos);
  EXPECT_GT(table, page.find("GPU idle"));
  EXPECT_THAT(
      page,
      HasSubstr("48 x layer_norm                  16.0 ms       0.0 %     25.0 %       2.50    0.0 %       0.0 %\n"));
  EXPECT_THAT(page, HasSubstr("48 x layer_norm                      7 MB       0 MB"));
  EXPECT_THAT(page, Not(HasSubstr("96 x gemm_128x64"))) << "nothing was seen of it";
  EXPECT_THAT(page_of(made_prediction()), Not(HasSubstr("warps wait")));
}

TEST(PredictionText, AtMostTwelveKernelsAreNamed) {
  Prediction p = made_prediction();
  p.kernels.clear();
  for (int i = 0; i < 14; ++i) {
    KernelGroup& group = p.kernels.emplace_back(made_norms());
    group.name = "kernel_" + std::to_string(i);
    group.count = 10, group.time = made_ms(10);
  }
  const std::string page = page_of(p);
  EXPECT_THAT(page, HasSubstr("kernel_11"));
  EXPECT_THAT(page, Not(HasSubstr("kernel_12")));
  EXPECT_THAT(page, HasSubstr("    60.0 ms   30 %    880  all others\n"));  // 180 - 12 x 10 ms, 1000 - 12 x 10
}

TEST(PredictionText, WhereAllKernelsAreNamedNothingIsLeftOver) {
  Prediction p = made_prediction();
  p.step.kernel_count = 96 + 48;
  p.idle = {};
  const std::string page = page_of(p);
  EXPECT_THAT(page, Not(HasSubstr("all others")));
  EXPECT_THAT(page, Not(HasSubstr("GPU idle")));
}

// 350 W on each of four boards for 160 samples/s: 8.75 J a sample. The parts of the step add up with communication.
TEST(PredictionText, SeveralGpusSayWhatTheyExchange) {
  Prediction p = made_prediction();
  p.step.latency.communication = made_ms(6);
  p.step.latency.gaps = made_ms(2);
  p.parallel = made_parallel();
  Scenario s = made_scenario();
  s.training.parallel.data = 2, s.training.parallel.pipeline = 2;
  const std::string page = page_of(p, s);
  EXPECT_THAT(page, HasSubstr("8 x 512 tokens, amp-fp16, through a pipeline of 2 stages, 2 of them ·"));
  EXPECT_THAT(page, HasSubstr("\n  step time =   math 90.0 ms + memory 70.0 ms - both at once 30.0 ms + neither 64.0 "
                              "ms +\n                communication 6.00 ms\n"));
  EXPECT_THAT(page, HasSubstr("; 8.75 J a sample\n"));
  EXPECT_THAT(page, HasSubstr(R"(
  GPUs          4, each as fast as 83 % of one alone; communication 6.00 ms exposed, 34.0 ms hidden
                145 all reduce among data ranks: 6.23 GB in 36.0 ms of kernels, 6.00 ms exposed
                8 send recv among pipeline ranks: 0.042 GB in 4.00 ms of kernels, none exposed
                the last all_reduce keeps the GPU waiting
  pipeline      a rank waits for others for 9.00 ms a step on average
                stage 0: 2 GPUs, kernels 170 ms, waits 11.0 ms; 10.00 GiB allocated, 11.00 GiB
                reserved, 12.50 GiB used, fits
                stage 1: 1 GPU, kernels 180 ms, waits 7.00 ms; 20.00 GiB allocated, 21.00 GiB
                reserved, 39.00 GiB used, may not fit
  communicators 0.50 GiB to 0.75 GiB of device memory, outside PyTorch's allocator
)"));
}

TEST(PredictionText, RanksThatAllDoTheSameAreOneAndNameTheirCommunicators) {
  Prediction p = made_prediction();
  p.parallel = made_parallel();
  p.parallel->ranks.pop_back();
  p.parallel->ranks[0].name = "every rank";
  p.parallel->exposed = microseconds(0.5);
  const std::string page = page_of(p);
  EXPECT_THAT(page, HasSubstr("  communicators 0.75 GiB of device memory, outside PyTorch's allocator (every rank)\n"));
  EXPECT_THAT(page, Not(HasSubstr("  pipeline ")));
  EXPECT_THAT(page, Not(HasSubstr("keeps the GPU waiting"))) << "half a microsecond needs no reason";
}

TEST(PredictionText, MemoryThatRanOutSaysWhereAndWhatWouldHelp) {
  Prediction p = made_prediction();
  p.memory.runs = p.memory.fits = false;
  MemoryShortage& oom = p.memory.out_of_memory.emplace();
  oom.op = "bmm", oom.phase = Phase::forward, oom.layer = 7, oom.category = Category::activations;
  oom.requested_bytes = 96 * kMadeMiB, oom.missing_bytes = 40 * kMadeMiB;
  p.memory.would_fit = {"training.micro_batch=4", "training.attention=flash training.precision=bf16"};
  EXPECT_THAT(page_of(p), HasSubstr(R"(
  memory        10.00 GiB allocated, 11.00 GiB reserved, 12.50 GiB in nvidia-smi; DOES NOT FIT in
                40.00 GiB
                runs out in bmm of the forward, block 7, at 96.0 MiB of activations; the whole step
                needs 12.75 GiB
                fits with --set training.micro_batch=4 --set training.attention=flash --set
                training.precision=bf16
)"));
}

TEST(PredictionText, WhatRanOutOfMemoryHasATimeWithACondition) {
  Prediction p = made_prediction();
  EXPECT_THAT(page_of(p), Not(HasSubstr("if it had the memory")));
  p.memory.runs = p.memory.fits = false;
  EXPECT_THAT(page_of(p), HasSubstr("200 ms (190 ms to 215 ms) if it had the memory"));
}

TEST(PredictionText, MemoryWithinTheSpreadMayNotFit) {
  Prediction p = made_prediction();
  p.memory.fits = false;
  p.memory.peak_layer = -1;
  const std::string page = page_of(p);
  EXPECT_THAT(page, HasSubstr("MAY NOT FIT in\n                40.00 GiB\n"));
  EXPECT_THAT(page, HasSubstr("runs like this one took up to 13.00 GiB with the same software\n"));
  EXPECT_THAT(page, HasSubstr("reached in addmm of the backward\n"));
}

TEST(PredictionText, AHostSaysHowFarItIsFromItsTippingPoint) {
  Prediction p = made_prediction();
  p.step.host.tipping = 0.5;  // three times as fast
  p.step.host.known = false;
  p.step.host.exposed = microseconds(0.05);
  EXPECT_THAT(page_of(p), HasSubstr(R"(
  host          120 ms of work, the GPU waits 0 ms for it (0 %); GPU-bound on one 3 times faster;
                host not measured: the range is that of hosts seen
)"));
  p.step.host.tipping = 0.0;
  p.step.host.known = true;
  EXPECT_THAT(page_of(p), HasSubstr("  host          120 ms of work, the GPU waits 0 ms for it (0 %)\n"));
}

TEST(PredictionText, WhatWasNotValidatedIsSaidAndAnIdleLimitIsNot) {
  Prediction p = made_prediction();
  p.step.validated = false;
  p.step.held = made_ms(0.1);
  const std::string page = page_of(p);
  EXPECT_THAT(page, HasSubstr("200 ms (190 ms to 215 ms, estimated)   160"));
  EXPECT_THAT(page, Not(HasSubstr("limited by power")));
}

TEST(PredictionText, GenerationSaysWhatTheFirstAndTheOtherTokensTake) {
  Prediction p = made_prediction();
  p.generation = Generation{made_ms(31), made_ms(7), made_gib(0.5)};
  Scenario s = made_scenario();
  s.training.inference = InferenceDescription{.sequences = 3, .new_tokens = 64, .beams = 5};
  const std::string page = page_of(p, s);
  EXPECT_THAT(page, HasSubstr("3 x 512 tokens, amp-fp16, without gradients, 64 new tokens, 5 beams · "));
  EXPECT_THAT(page, HasSubstr("  generation    31.0 ms to the first token, 7.00 ms for each after it; 0.50 GiB of keys "
                              "and values\n                at the end\n"));
}

// 200 over 160 ms, 160 over 200 samples/s, 10 over 8, 11 over 12.5 and 12.5 over 10 GiB.
TEST(PredictionText, WhatWasMeasuredStandsBesideWithTheErrorOfThePrediction) {
  Scenario s = made_scenario();
  s.measured.source = "a log";
  s.measured.step_time = made_ms(160);
  s.measured.samples_per_s = 200;
  s.measured.peak_allocated = Bytes{8 * kGiB};
  s.measured.peak_reserved = Bytes{12.5 * kGiB};
  s.measured.device_used = Bytes{10 * kGiB};
  EXPECT_THAT(page_of(made_prediction(), s), HasSubstr(R"(
  measured      160 ms (predicted +25.0 %)   200 samples/s (predicted -20.0 %)   )"
                                                       R"(
                8.00 GiB allocated (predicted +25.0 %)   )"
                                                       R"(
                12.50 GiB reserved (predicted -12.0 %)   )"
                                                       R"(
                10.00 GiB in use (predicted +25.0 %)   )"
                                                       R"(
                a log
)"));
}

TEST(PredictionText, AdviceSaysWhatAChangeTakesAwayAndWhy) {
  Prediction p = made_prediction();
  p.advice = {{"training.precision=bf16", made_ms(30), made_gib(2), "half the bytes"},
              {"training.micro_batch=16", made_ms(-4), made_gib(-0.5), "fewer launches"},
              {"training.fused=true", microseconds(9), 0, "nothing to see"}};
  EXPECT_EQ(advice_text(p), R"(
  what would help
   -30.0 ms   -2.00 GiB  --set training.precision=bf16
                         half the bytes
   +4.00 ms   +0.50 GiB  --set training.micro_batch=16
                         fewer launches
       0 ms   +0.00 GiB  --set training.fused=true
                         nothing to see
)");
}

TEST(PredictionText, TheTableHasARowForEachGpu) {
  Prediction yes = made_prediction(), no = made_prediction(), perhaps = made_prediction(), unknown = made_prediction();
  no.hardware = "amd-made", no.memory.runs = no.memory.fits = false;
  no.step.time = made_ms(1234.56), no.step.samples_per_s = 12345.6;
  no.limited_by = {};
  no.limited_by[static_cast<std::size_t>(Limiter::launch)] = made_ms(617.28);
  perhaps.memory.fits = false;
  unknown.memory.source = MemorySource::unknown;
  unknown.step.samples_per_s = 0;
  yes.memory.needed = no.memory.needed = made_gib(13);
  const std::vector<Prediction> all{yes, no, perhaps, unknown};
  EXPECT_EQ(prediction_table("a question\n8 x 512 tokens\n", all), R"(a question
8 x 512 tokens

                       step           range  samples  alloc reserv in use       )"
                                                                   R"(
GPU                      ms              ms    per s    GiB    GiB    GiB  fits limited by
made                    200       190 - 215      160  10.00  11.00  12.50  yes  compute 40 %
amd-made               1235       190 - 215   12,350  10.00  11.00  12.50  NO   launches and host 50 %
made                    200       190 - 215      160  10.00  11.00  12.50  ?    compute 40 %
made                    200       190 - 215        -      -      -      -  -    compute 40 %
)");
  // 3.6 USD an hour are 0.001 a second: at 81,920 tokens a second 0.0122 USD a million.
  const std::vector<double> prices{3.6, 3.6, 0.0, 3.6};
  const std::string priced = prediction_table("", all, prices);
  EXPECT_THAT(priced, HasSubstr("made                    200       190 - 215   81,920  13.00  0.0122  yes"));
  EXPECT_THAT(priced, HasSubstr("amd-made               1235       190 - 215   81,920  13.00       -  NO"));
}

}  // namespace
}  // namespace ridgeline
