// Texts of recordings: every value that a line of an op trace takes, and what is told of one that it does not; where a
// document of JSON stops being one.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <fstream>

#include "sim/trace/json_pieces.h"
#include "sim/trace/op_trace/read_op_trace.h"
#include "sim/units/user_error.h"
#include "tests/support/temporary_path.h"
#include "tests/support/trace_listing.h"

namespace ridgeline::trace {
namespace {

/// The op trace of a step of these lines, after a storage of 60 bytes, one of 28 not yet allocated, a part and an op.
std::string text_with(const std::string& lines) {
  return R"({"ridgeline":"op-trace","version":1,"parameters":0}
{"record":"storage","id":0,"bytes":60,"category":"weights"}
{"record":"storage","id":1,"bytes":28,"category":"inputs","allocated":false}
{"record":"module","name":"a"}
{"record":"op","id":5,"kind":"memset","bytes":28}
{"record":"step"}
)" + lines +
         "\n{\"record\":\"end\"}\n";
}
std::string read_with(const std::string& lines) {
  try {
    return listing_of(parse_op_trace(text_with(lines), "f").trace);
  } catch (const UserError& error) {
    return error.what();
  }
}
/// What becomes of a call of aten::NAME with these inputs; the listing's other lines left out.
std::string aten_with(const std::string& name, const std::string& in, const std::string& more = "") {
  const std::string text =
      read_with(R"({"record":"aten","name":"aten::)" + name + R"(","phase":"forward","in":[)" + in + "]" + more + "}");
  std::string lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    if (!line.starts_with("host ") && !line.starts_with("allocate ") && line != "step")
      lines += (lines.empty() ? "" : "\n") + line;
    begin = end + 1;
  }
  return lines;
}

const std::string kOfLine = R"({"type":"fp32","sizes":[3,5]})",
                  kStored = R"({"type":"fp32","sizes":[3,5],"storage":0})";

TEST(WorkedDocuments, ArgumentsOfACall) {
  EXPECT_EQ(aten_with("mul", kStored + ",2.5"), "scale 3x5 fp32>fp32 contiguous [0:60 > 2:60] forward");
  EXPECT_EQ(aten_with("mul", kOfLine + "," + kStored), "mul 3x5 fp32,fp32>fp32 contiguous [2:60 0:60 > 3:60] forward");
  EXPECT_EQ(aten_with("mul", kStored + "," + kStored, R"(,"out":[{"type":"bf16","sizes":[3,5]}])"),
            "mul 3x5 fp32,fp32>bf16 contiguous [0:60 0:60 > 2:30] forward");
  EXPECT_EQ(aten_with("mul", kStored + R"(,{"type":"fp32","sizes":[3,5],"strides":[1,3]})"),
            "mul 3x5 fp32,fp32>fp32 transposed [0:60 2:60 > 3:60] forward");
  EXPECT_EQ(aten_with("gelu", kStored + R"(,"tanh")"), "gelu_tanh 3x5 fp32>fp32 contiguous [0:60 > 2:60] forward");
  EXPECT_EQ(aten_with("sum", kStored + ",[0]"), "reduction sum_rows fp32 rows=3 cols=5 [0:60 > 2:20] forward");
  EXPECT_EQ(aten_with("sum", kStored + ",[true]"), "reduction sum_cols fp32 rows=3 cols=5 [0:60 > 2:12] forward");
  EXPECT_EQ(aten_with("sum", kStored + ",[false]"), "reduction sum_rows fp32 rows=3 cols=5 [0:60 > 2:20] forward");
  EXPECT_EQ(aten_with("sum", kStored + ",null"), "reduction sum_all fp32 rows=1 cols=15 [0:60 > 2:4] forward");
  EXPECT_EQ(aten_with("_softmax", R"({"type":"bf16","sizes":[3,5]},-1,true)"),
            "softmax bf16 fp32 rows=3 cols=5 [2:30 > 3:60] forward");
  EXPECT_EQ(aten_with("_softmax", R"({"type":"bf16","sizes":[3,5]},-1,false)"),
            "softmax bf16 bf16 rows=3 cols=5 [2:30 > 3:30] forward");
  EXPECT_EQ(aten_with("copy_", kStored + R"(,{"type":"bf16","sizes":[3,5],"host":true})"),
            "copy host_to_device fp32 rows=3 cols=5 parts=1 [2:30 > 0:60] forward");
  EXPECT_EQ(aten_with("cat", R"({"tensors":[)" + kStored + "," + kOfLine + "]},1"),
            "copy concatenate fp32 rows=3 cols=5 parts=2 [0:60 2:60 > 3:120] forward");
  EXPECT_EQ(aten_with("mine", kStored, R"(,"layer":7)"),
            "unknown aten::mine read_bytes=60 written_bytes=60 [2:60 > 3:60] forward of 7");
}

TEST(WorkedDocuments, ArgumentsThatCannotBe) {
  const auto told = [](const std::string& argument) { return aten_with("relu", argument); };
  EXPECT_EQ(told(R"({"type":"fp33","sizes":[3]})"), "f:7: unknown type \"fp33\"; expected fp32, tf32, bf16, fp16, ...");
  EXPECT_EQ(told(R"({"sizes":[3]})"), "f:7: \"type\" is missing");
  EXPECT_EQ(told(R"({"type":"fp32"})"), "f:7: a tensor needs \"sizes\"");
  EXPECT_EQ(told(R"({"type":"fp32","sizes":[-1]})"), "f:7: \"sizes\" must be 0 to 1125899906842624, got -1");
  EXPECT_EQ(told(R"({"type":"fp32","sizes":[1.5]})"), "f:7: \"sizes\" must be a whole number, got 1.5");
  EXPECT_EQ(told(R"({"type":"fp32","sizes":[3,5],"strides":[1]})"),
            "f:7: a tensor's \"strides\" and \"sizes\" differ in number");
  EXPECT_EQ(told(R"({"type":"fp32","sizes":[3,5],"strides":[1,-1]})"),
            "f:7: \"strides\" must be 0 to 1125899906842624, got -1");
  EXPECT_EQ(told(R"({"type":"fp32","sizes":[3,5],"storage":2})"),
            "f:7: a tensor names storage 2, which has no line above");
  EXPECT_EQ(told(R"({"type":"fp32","sizes":[33554432,33554433]})"),
            "f:7: a tensor has more elements than any device holds");
  EXPECT_EQ(told(R"({"type":"uint8","sizes":[33554432,33554432]})").substr(0, 4), "relu") << "2^50";
  EXPECT_EQ(told(R"({"type":"fp32","sizes":[33554432,33554432]})"),
            "f:7: aten::relu makes more bytes than any device holds");
  EXPECT_EQ(told(R"({"tensors":[3]})"), "f:7: \"tensors\" must be a list of tensors");
  EXPECT_EQ(told(R"([1,"x"])"), "f:7: a list of numbers holds \"x\"");
}

TEST(WorkedDocuments, RecordsOfAStep) {
  const std::string begun = "allocate 0\nstep\n";
  EXPECT_EQ(read_with(R"({"record":"call","op":5,"in":[],"out":[[0,28]],"phase":"backward","layer":3,"module":1})"),
            begun + "memset bytes=28 [ > 0:28] backward of 3\n");
  EXPECT_EQ(read_with(R"({"record":"call","op":5,"in":[[0,12],[1,4]],"out":[],"phase":"other","stream":2})"),
            begun + "memset bytes=28 [0:12 1:4] other on 2\n");
  EXPECT_EQ(read_with(R"({"record":"allocate","id":1})"), begun + "allocate 1\n");
  EXPECT_EQ(read_with("{\"record\":\"free\",\"id\":0}\n{\"record\":\"allocate\",\"id\":0}"),
            begun + "free 0\nallocate 0\n");
  EXPECT_EQ(read_with(R"({"record":"host","class":"linear","times":4})"), begun + "host linear 4\n");
  EXPECT_EQ(read_with(R"({"record":"wait"})"), begun + "wait\n");
  EXPECT_EQ(read_with("{\"record\":\"event\",\"event\":0,\"stream\":2}\n{\"record\":\"wait_event\",\"event\":0}\n"
                      "{\"record\":\"host_waits\",\"event\":0}"),
            begun + "event 0 of 2\n0 waits for 0\nhost waits for 0\n");
  const Recording streams = parse_op_trace(text_with(R"({"record":"event","event":3,"stream":2})"), "f");
  EXPECT_EQ(streams.trace.streams, (std::vector<std::string>{"default", "stream 1", "stream 2"}));
  EXPECT_EQ(streams.trace.events, 4u);
}

TEST(WorkedDocuments, RecordsThatCannotBe) {
  const std::pair<const char*, const char*> lines[] = {
      {R"({"record":"other"})",
       "unknown \"record\":\"other\"; expected storage, allocate, free, op, call, aten, host, module, wait, event, "
       "wait_event, host_waits, repeat, repeated, step, end"},
      {R"({"record":7})", "\"record\" must be a string, got 7"},
      {R"({})", "\"record\" is missing"},
      {R"([1])", "every line must be a JSON object"},
      {R"({"record":"storage","id":3,"bytes":8,"category":"inputs"})",
       "storage 3 follows storage 1: ids count up and are never used again"},
      {R"({"record":"storage","id":2,"bytes":8,"category":"input"})",
       "unknown category \"input\" (did you mean inputs?)"},
      {R"({"record":"storage","id":2,"bytes":8,"category":"inputs","allocated":1})",
       "\"allocated\" must be true or false, got 1"},
      {R"({"record":"allocate","id":2})", "storage 2 is allocated but has no line above"},
      {R"({"record":"allocate","id":0})", "storage 0 is allocated but alive"},
      {R"({"record":"free","id":1})", "storage 1 is freed but not alive"},
      {R"({"record":"free","id":2})", "storage 2 is freed but not alive"},
      {R"({"record":"op","id":5,"kind":"memset","bytes":1})", "op 5 is described twice"},
      {R"({"record":"op","id":6,"kind":"memsets","bytes":1})", "unknown kind \"memsets\" (did you mean memset?)"},
      {R"({"record":"call","op":4,"in":[],"out":[],"phase":"other"})", "op 4 is called but not described above"},
      {R"({"record":"call","op":5,"in":[[0]],"out":[],"phase":"other"})", "\"in\" must be a list of [storage, bytes]"},
      {R"({"record":"call","op":5,"in":[],"out":7,"phase":"other"})", "\"out\" must be a list of [storage, bytes]"},
      {R"({"record":"call","op":5,"in":[[2,1]],"out":[],"phase":"other"})",
       "\"in\" names storage 2, which has no line above"},
      {R"({"record":"call","op":5,"in":[],"out":[],"phase":"othr"})", "unknown phase \"othr\" (did you mean other?)"},
      {R"({"record":"call","op":5,"in":[],"out":[],"phase":"other","layer":-2})",
       "\"layer\" must be -1 to 32767, got -2"},
      {R"({"record":"call","op":5,"in":[],"out":[],"phase":"other","module":2})", "\"module\" must be 0 to 1, got 2"},
      {R"({"record":"call","op":5,"in":[],"out":[],"phase":"other","stream":64})",
       "\"stream\" must be 0 to 63, got 64"},
      {R"({"record":"module","name":"b","inside":2})", "\"inside\" must be 0 to 1, got 2"},
      {R"({"record":"wait_event","event":0})", "event 0 is waited for but not recorded above"},
      {R"({"record":"host","class":"linear","times":0})", "\"times\" must be 1 to 4294967294, got 0"},
      {R"({"record":"step"})", "a step begins inside a step"},
      {R"({"record":"repeated"})", "\"repeated\" without \"repeat\" above"}};
  for (const auto& [line, told] : lines) EXPECT_EQ(read_with(line), fmt::format("f:7: {}", told)) << line;
  EXPECT_EQ(read_with(R"({"record":"repeat","times":2})"), "f:8: a step ends before \"repeated\"");
  EXPECT_EQ(read_with(R"({"record":"end"})"), "f:8: a step ends that has not begun");
  EXPECT_EQ(read_with("{\"record\":\"repeat\",\"times\":2}\n{\"record\":\"repeat\",\"times\":2}"),
            "f:8: \"repeat\" must stand in a step, and not in another one");
  EXPECT_EQ(read_with("{\"record\":\"wait\"}\n{\"record\":\"repeat\",\"times\":2}\n{\"record\":\"wait\"}\n"
                      "{\"record\":\"repeated\"}\n{\"record\":\"repeat\",\"times\":2}"),
            "f:11: a step has two \"repeat\": one is read");
  EXPECT_EQ(read_with("{\"record\":\"repeat\",\"times\":2}\n{\"record\":\"wait\"}\n{\"record\":\"repeated\"}"),
            "f:9: what \"repeat\" begins must do what the records of the step before it do, and free all that it "
            "allocates");
  EXPECT_EQ(read_with("{\"record\":\"wait\"}\n{\"record\":\"repeat\",\"times\":2}\n{\"record\":\"wait\"}\n{\"record\":"
                      "\"repeated\"}"),
            "allocate 0\nstep\nwait\nwait\n");
  EXPECT_EQ(read_with("{\"record\":\"call\",\"op\":5,\"in\":[],\"out\":[[0,28]],\"phase\":\"other\"}\n"
                      R"({"record":"aten","name":"aten::relu","phase":"other","in":[{"type":"fp32","sizes":[3]}]})"),
            "f:9: the trace mixes \"call\" and \"aten\" records");
}

TEST(WorkedDocuments, HeadersOfOpTraces) {
  const Recording read = parse_op_trace(
      R"({"ridgeline":"op-trace","version":1,"producer":"p","title":"t","precision":"tf32","samples":3,"tokens":5.5,)"
      R"("parameters":7,"model_flops":9e3,"notes":["n",4,"m"],"parallel":{"data":2,"replicate":3,"tensor":4,"context":5,)"
      R"("expert":6,"pipeline":7,"split":8}})"
      "\n\n  \t\n{\"record\":\"step\"}\r\n{\"record\":\"end\"}",
      "f");
  EXPECT_EQ(read.info.producer, "p");
  EXPECT_EQ(read.info.title, "t");
  EXPECT_EQ(read.info.precision, "tf32");
  EXPECT_EQ(read.info.samples, 3.0);
  EXPECT_EQ(read.info.tokens, 5.5);
  EXPECT_EQ(read.trace.parameters, 7);
  EXPECT_EQ(read.trace.model_flops, 9000.0);
  EXPECT_EQ(read.trace.notes, (std::vector<std::string>{"n", "m"}));
  const ParallelDescription& ranks = read.info.ranks;
  EXPECT_EQ(fmt::format("{} {} {} {} {} {} {}", ranks.data, ranks.replicate, ranks.tensor, ranks.context, ranks.expert,
                        ranks.pipeline, ranks.split),
            "2 3 4 5 6 7 8");
  const auto told = [](const std::string& header) {
    try {
      parse_op_trace(header, "f");
      return std::string("read");
    } catch (const UserError& error) {
      return std::string(error.what());
    }
  };
  const std::string first = R"({"ridgeline":"op-trace","version":1,"parameters":0)";
  EXPECT_EQ(told(first + "}"), "f:1: the trace has no step");
  EXPECT_EQ(told(first + "}\n{\"record\":\"step\"}"),
            "f:2: the file ends inside a step: it is cut off, or \"end\" is missing");
  EXPECT_EQ(told(""), "f:1: the file is empty");
  EXPECT_EQ(told(R"({"ridgeline":"other"})"),
            "f:1: not an op trace: the first line must have \"ridgeline\":\"op-trace\"");
  EXPECT_EQ(told(R"({"ridgeline":1})"), "f:1: not an op trace: the first line must have \"ridgeline\":\"op-trace\"");
  EXPECT_EQ(told(R"({"ridgeline":"op-trace","version":2,"parameters":0})"),
            "f:1: version 2 of the format is not known; this program reads version 1");
  EXPECT_EQ(told(R"({"ridgeline":"op-trace","version":1})"), "f:1: \"parameters\" is missing");
  EXPECT_EQ(told(first + R"(,"samples":-1})"), "f:1: \"samples\" must be a number of at least 0, got -1");
  EXPECT_EQ(told(first + R"(,"title":3})"), "f:1: \"title\" must be a string, got 3");
  EXPECT_EQ(told(first + R"(,"parallel":{"data":0}})"), "f:1: \"data\" must be 1 to 1048576, got 0");
  EXPECT_EQ(told(first + R"(,"parallel":{"data":1048577}})"), "f:1: \"data\" must be 1 to 1048576, got 1048577");
  EXPECT_EQ(told(first + R"(,"parallel":{"data":1048576}})"), "f:1: the trace has no step");
}

/// "key=value at line" of every piece of a document, or what is told of it.
std::string document(const std::string& text) {
  const std::string path = temporary_path("d.json");
  std::ofstream(path, std::ios::binary) << text;
  std::string all;
  try {
    JsonPieces pieces(path);
    JsonPiece piece;
    while (pieces.next(piece))
      all += fmt::format("{}{}={} at {}; ", piece.key, piece.element ? "[]" : "", piece.text, pieces.line());
  } catch (const UserError& error) {
    all += std::string(error.what()).substr(path.size());
  }
  return all;
}

TEST(WorkedDocuments, PiecesOfADocumentAndTheirLines) {
  EXPECT_EQ(document("{\"a\":1,\n\"b\": [2,\n{\"x\": \"]}\\\"\"} ,\"s\"],\n\n\"c\" :{\"d\":[\n]}, \"e\":true}\n"),
            "a=1 at 1; b[]=2 at 2; b[]={\"x\": \"]}\\\"\"} at 3; b[]=\"s\" at 3; c={\"d\":[\n]} at 5; e=true at 6; ");
  EXPECT_EQ(document("\xef\xbb\xbf [1,\n [2,3]]"), "[]=1 at 1; []=[2,3] at 2; ");
  EXPECT_EQ(document("{\"a\":1,}"), "a=1 at 1; ") << "a comma too many";
  EXPECT_EQ(document("[1,]"), "[]=1 at 1; ");
  EXPECT_EQ(document("{\"a\":[],\"b\":[ ],\"c\":1}"), "c=1 at 1; ");
  EXPECT_EQ(document(" { } "), "");
  EXPECT_EQ(document(" [ ] "), "");
}


TEST(WorkedDocuments, WhereADocumentStopsBeingOne) {
  EXPECT_EQ(document("{\"a\" 1}"), ":1: not JSON: expected ':' after \"a\"");
  EXPECT_EQ(document("{\"a\":1 \"b\":2}"), "a=1 at 1; :1: not JSON: expected ',' or '}', got '\"'");
  EXPECT_EQ(document("[1\n2]"), "[]=1 at 1; :2: not JSON: expected ',' or ']', got '2'");
  EXPECT_EQ(document("{a:1}"), ":1: not JSON: expected a name in quotes, got 'a'");
  EXPECT_EQ(document("{\"a\":}"), ":1: not JSON: expected a value, got '}'");
  EXPECT_EQ(document("{\"a\":1}x"), "a=1 at 1; :1: not JSON: text after the end of the document");
  EXPECT_EQ(document(" \n"), ":2: the file holds nothing but white space");
  EXPECT_EQ(document("x"), ":1: not JSON: it begins with 'x'");
  EXPECT_EQ(document("\x01"), ":1: not JSON: it begins with byte 0x01");
  EXPECT_EQ(document("\x7f"), ":1: not JSON: it begins with byte 0x7f");
  EXPECT_EQ(document("\x80"), ":1: not JSON: it begins with byte 0x80");
  EXPECT_EQ(document("PK\x03\x04rest"), ":1: not JSON: it begins with 'P'");
}

TEST(WorkedDocuments, WhereADocumentIsCutOff) {
  const auto inside = [](const std::string& text) {
    const std::string told = document(text);
    const std::string begin = ": the text ends inside ";
    const std::size_t at = told.find(begin);
    return at == std::string::npos ? told : told.substr(at + begin.size());
  };
  EXPECT_EQ(inside("{"), "the outermost object, after 1 bytes: the file is cut off");
  EXPECT_EQ(inside("{\"a\""), "\"a\", after 4 bytes: the file is cut off");
  EXPECT_EQ(inside("{\"a\":"), "\"a\", after 5 bytes: the file is cut off");
  EXPECT_EQ(inside("{\"a\":1"), "the outermost object, after 6 bytes: the file is cut off");
  EXPECT_EQ(inside("{\"a\":1,"), "the outermost object, after 7 bytes: the file is cut off");
  EXPECT_EQ(inside("{\"a\":["), "\"a\", after 6 bytes: the file is cut off");
  EXPECT_EQ(inside("{\"a\":[1"), "\"a\", after 7 bytes: the file is cut off");
  EXPECT_EQ(inside("{\"a\":[1,"), "\"a\", after 8 bytes: the file is cut off");
  EXPECT_EQ(inside("{\"a\":[1]"), "the outermost object, after 8 bytes: the file is cut off");
  EXPECT_EQ(inside("{\"a\":{\"b\":1"), "\"a\", after 11 bytes: the file is cut off");
  EXPECT_EQ(inside("{\"a\":\"b"), "\"a\", after 7 bytes: the file is cut off");
  EXPECT_EQ(inside("{\"a\":\"b\\"), "\"a\", after 8 bytes: the file is cut off");
  EXPECT_EQ(inside("["), "the array, after 1 bytes: the file is cut off");
  EXPECT_EQ(inside("[1"), "the array, after 2 bytes: the file is cut off");
  EXPECT_EQ(inside("[{\"a\":1"), "a value, after 7 bytes: the file is cut off");
}

}  // namespace
}  // namespace ridgeline::trace
