// Tables of nsys stats and nvprof: forms, units and separators change nothing of what they say.
#include "sim/trace/nsight/profile_tables.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "sim/answer/kernel_table.h"
#include "sim/hardware/load_gpu.h"
#include "sim/units/user_error.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;
using trace::ProfileTables;
using trace::TableKind;

std::string table_file(const std::string& text) {
  const std::string path = temporary_path("table.csv");
  std::ofstream(path, std::ios::binary) << text;
  return path;
}
ProfileTables tables_in(const std::string& text) {
  const std::string path = table_file(text);
  EXPECT_TRUE(trace::looks_like_profile_tables(path)) << text;
  return trace::read_profile_tables(path);
}

void expect_two_kernels(const ProfileTables& tables, const std::string& form) {
  ASSERT_EQ(tables.rows.size(), 2u) << form;
  EXPECT_EQ(tables.rows[0].name, "void gemm<a, b>(int)") << form;
  EXPECT_EQ(tables.rows[0].kind, TableKind::kernels) << form;
  EXPECT_NEAR(tables.rows[0].seconds, 3.5e-3, 1e-12) << form;
  EXPECT_EQ(tables.rows[0].count, 7) << form;
  EXPECT_EQ(tables.rows[1].name, "add") << form;
  EXPECT_NEAR(tables.rows[1].seconds, 1.2e-3, 1e-12) << form;
}

TEST(ProfileTables, SameSumsInEveryForm) {
  const std::string quoted = "\"void gemm<a, b>(int)\"";
  const std::vector<std::string> forms = {
      "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
      "74.5,3500000,7,500000.0,500000.0,1,2,0.0," +
          quoted + "\n25.5,1200000,3,400000.0,1,1,2,0.0,add\n",
      // of 2020: without units; behind what the command prints while it runs
      "Generating CUDA Kernel Statistics...\nProcessing [report1.sqlite] with [/opt/nsight/reports/gpukernsum.py]... "
      "\n\n"
      "Time(%),Total Time,Instances,Average,Minimum,Maximum,Name\n74.5,3500000,7,500000.0,1,2," +
          quoted + "\n25.5,1200000,3,400000.0,1,2,add\n\nGenerating more\n",
      "Time (%),Total Time (us),Instances,Avg (us),Name\n74.5,\"3,500\",7,500.0," + quoted +
          "\n25.5,\"1,200\",3,400,add\n",
      "Time (%);Total Time (ms);Instances;Avg (ms);Name\r\n74.5%;3.5;7;0.5;void gemm<a, "
      "b>(int)\r\n25.5%;1.2;3;0.4;add\r\n",
      "Time (%)\tTotal Time (sec)\tInstances\tName\n74.5\t0.0035\t7\tvoid gemm<a, b>(int)\n25.5\t0.0012\t3\tadd\n",
      // as on a terminal
      " ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):\n\n"
      " Time (%)  Total Time (ns)  Instances  Avg (ns)   Name                \n"
      " --------  ---------------  ---------  ---------  --------------------\n"
      "     74.5        3,500,000          7  500,000.0  void gemm<a, b>(int)\n"
      "     25.5        1,200,000          3  400,000.0  add                 \n\n",
      // launches one by one, summed up by name
      "Start (ns),Duration (ns),CorrId,GrdX,Bytes (MB),Device,Strm,Name\n1,1200000,1,1,,GPU "
      "(0),7,add\n2,3500000,2,1,,GPU "
      "(0),7," +
          quoted + "\n",
      // nvprof's, with a row of units
      "==1== Profiling result:\n\"Type\",\"Time(%)\",\"Time\",\"Calls\",\"Avg\",\"Min\",\"Max\",\"Name\"\n"
      ",%,ms,,us,us,us,\n\"GPU activities\",74.5,3.5,7,500,1,2," +
          quoted + "\n\"GPU activities\",25.5,1.2,3,400,1,2,add\n"};
  for (const std::string& form : forms) {
    ProfileTables tables = tables_in(form);
    if (form.starts_with("Start")) tables.rows[0].count = 7;
    expect_two_kernels(tables, form);
  }
}

TEST(ProfileTables, MeansTimesInstancesWhereNoTotalStands) {
  const ProfileTables tables = tables_in(
      "PID,TID,DevId,Count,QCount,TAvg (us),AAvg (us),KAvg (us),KMed (us),API Name,Kernel Name\n"
      "1,1,0,7,7,600,3,500,500,cudaLaunchKernel,\"void gemm<a, "
      "b>(int)\"\n1,1,0,3,3,600,3,400,400,cudaLaunchKernel,add\n");
  expect_two_kernels(tables, "cuda_kern_exec_sum");
}

TEST(ProfileTables, SeveralTablesOfOneFileKeepTheirKinds) {
  const ProfileTables tables = tables_in(
      "Time (%),Total Time (ns),Instances,Name\n100,5000,1,k\n\n"
      "Time (%),Total Time (ns),Num Calls,Avg (ns),Name\n60,4000,2,2000,cudaMemcpyAsync\n40,3000,1,3000,poll\n\n"
      "Time (%),Total Time (ns),Count,Avg (ns),Operation\n100,2000,4,500,[CUDA memcpy Host-to-Device]\n\n"
      "Time (%),Total Time (ns),Instances,Avg (ns),Style,Range\n100,1000,2,500,PushPop,:forward\n\n"
      "Time (%),Total Time (ns),Instances,Category,Operation\n50,900,1,CUDA_KERNEL,j\n50,800,1,MEMORY_OPER,[CUDA "
      "memset]\n");
  std::vector<TableKind> kinds;
  for (const trace::TableRow& row : tables.rows) kinds.push_back(row.kind);
  EXPECT_EQ(kinds, (std::vector{TableKind::kernels, TableKind::api, TableKind::system, TableKind::copies,
                                TableKind::ranges, TableKind::kernels, TableKind::copies}));
}

TEST(ProfileTables, OtherTextsAreNone) {
  for (const char* text : {"", "title: a scenario\nmodel: gpt2\n", "{\"traceEvents\": []}", "a,b,c\n1,2,3\n",
                           "addr_from,addr_to,size\n1,2,3\n", "name,value\nx,1\n"})
    EXPECT_FALSE(trace::looks_like_profile_tables(table_file(text))) << text;
  try {
    (void)tables_in("Time (%),Total Time (ns),Instances,Name\n50,many,2,k\n");
    FAIL() << "no number was read as one";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr(":2: 'many' is no time"));
  }
}

TEST(KernelTables, FamiliesSumToAllAndCarryTimesByTheirClass) {
  const ProfileTables tables = tables_in(
      "Time (%),Total Time (ns),Instances,Name\n50,5000000,10,sm80_xmma_gemm_f16f16_f16f32_f32_tn_n\n"
      "30,3000000,10,\"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>\"\n"
      "19,1900000,2000,\"void at::native::unrolled_elementwise_kernel<FillFunctor<int>>\"\n"
      "1,100000,1,ncclDevKernel_AllReduce_Sum_f16_RING_LL\n");
  const Gpu v100 = load_gpu("nvidia-v100-sxm2-16gb"), h100 = load_gpu("nvidia-h100-sxm5-80gb");
  const KernelTable table = kernel_table(tables, &v100, &h100);
  Seconds all{};
  for (const TableFamily& family : table.families) all += family.measured;
  EXPECT_NEAR(all.value(), 10e-3, 1e-12);
  ASSERT_EQ(table.kernels.size(), 4u);
  EXPECT_EQ(table.kernels[0].limiter, Limiter::compute);
  EXPECT_EQ(table.kernels[1].limiter, Limiter::dram);
  EXPECT_EQ(table.kernels[2].limiter, Limiter::launch) << "0.95 us each";
  EXPECT_EQ(table.kernels[3].limiter, Limiter::link);
  EXPECT_LT(*table.kernels[0].carried, *table.kernels[1].carried * (5.0 / 3.0))
      << "its peak grew by more than the bandwidth";
  EXPECT_NEAR(table.kernels[3].carried->value(), 100e-6, 1e-12) << "links are not in the table";
  const KernelTable here = kernel_table(tables, &v100, &v100);
  for (const TableKernel& kernel : here.kernels) EXPECT_NEAR(ratio(*kernel.carried, kernel.measured), 1.0, 1e-9);
}

}  // namespace
}  // namespace ridgeline
