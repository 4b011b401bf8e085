// The extension module: the public library for Python. Numbers stay where the answer has them: arrays are views.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <future>
#include <stop_token>

#include "ridgeline/ridgeline.h"

namespace py = pybind11;
using ridgeline::Answer;
using ridgeline::Question;
using ridgeline::Simulator;

namespace {

/// A read-only array over `values`, which live as long as `answer`.
template <class T>
py::array_t<T> view(const std::vector<T>& values, const Answer& answer) {
  const py::capsule keeps(new Answer(answer), [](void* kept) { delete static_cast<Answer*>(kept); });
  py::array_t<T> array(static_cast<py::ssize_t>(values.size()), values.data(), keeps);
  py::detail::array_proxy(array.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  return array;
}

constexpr std::chrono::milliseconds kBetweenSignals{20};

/// `call` on a thread of its own, without the interpreter's lock, while this one looks for signals: an exception that a
/// handler raises (KeyboardInterrupt) stops the call.
template <class Call>
auto released(const Call& call) {
  std::stop_source stop;
  auto made = std::async(std::launch::async, [&] {
    const ridgeline::UntilStopped until(stop.get_token());
    return call();
  });
  for (;;) {
    {
      const py::gil_scoped_release release;
      if (made.wait_for(kBetweenSignals) == std::future_status::ready) break;
    }
    if (PyErr_CheckSignals() == 0) continue;
    const py::error_already_set raised;
    stop.request_stop();
    {
      const py::gil_scoped_release release;
      made.wait();
    }
    throw raised;
  }
  return made.get();
}

py::dict kernels_of(const Answer& answer) {
  const auto& table = *released([&] { return &answer.kernels(); });
  py::dict out;
  out["name"] = table.name;
  out["shape"] = table.shape;
  out["op"] = table.op;
  out["limiter"] = table.limiter;
  out["count"] = view(table.count, answer);
  out["time_s"] = view(table.time_s, answer);
  out["flops"] = view(table.flops, answer);
  out["read_bytes"] = view(table.read_bytes, answer);
  out["written_bytes"] = view(table.written_bytes, answer);
  out["dram_bytes"] = view(table.dram_bytes, answer);
  out["l2_bytes"] = view(table.l2_bytes, answer);
  return out;
}

py::dict timeline_of(const Answer& answer) {
  const auto& table = *released([&] { return &answer.timeline(); });
  py::dict out;
  out["names"] = table.names;
  out["shapes"] = table.shapes;
  out["kind"] = view(table.kind, answer);
  out["phase"] = view(table.phase, answer);
  out["layer"] = view(table.layer, answer);
  out["issued_s"] = view(table.issued_s, answer);
  out["start_s"] = view(table.start_s, answer);
  out["end_s"] = view(table.end_s, answer);
  return out;
}

py::dict memory_over_time_of(const Answer& answer) {
  const auto& table = *released([&] { return &answer.memory_over_time(); });
  py::dict out;
  out["at_s"] = view(table.at_s, answer);
  out["allocated"] = view(table.allocated, answer);
  out["reserved"] = view(table.reserved, answer);
  return out;
}

/// What questions are answered with.
void add_answers(py::module_& m) {
  py::class_<ridgeline::Step>(m, "Step")
      .def_property_readonly("time", [](const ridgeline::Step& s) { return s.time.value(); })
      .def_property_readonly("low", [](const ridgeline::Step& s) { return s.low.value(); })
      .def_property_readonly("high", [](const ridgeline::Step& s) { return s.high.value(); })
      .def_property_readonly("gpu_busy", [](const ridgeline::Step& s) { return s.gpu_busy.value(); })
      .def_property_readonly("host_time", [](const ridgeline::Step& s) { return s.host_time.value(); })
      .def_property_readonly("power", [](const ridgeline::Step& s) { return s.power.value(); })
      .def_property_readonly("energy", [](const ridgeline::Step& s) { return s.energy.value(); })
      .def_readonly("kernels", &ridgeline::Step::kernels)
      .def_readonly("samples_per_s", &ridgeline::Step::samples_per_s)
      .def_readonly("tokens_per_s", &ridgeline::Step::tokens_per_s)
      .def_readonly("mfu", &ridgeline::Step::mfu)
      .def_readonly("validated", &ridgeline::Step::validated);

  const auto whole = [](ridgeline::Bytes b) { return static_cast<std::int64_t>(b.value()); };
  py::class_<ridgeline::Memory>(m, "Memory")
      .def_readonly("known", &ridgeline::Memory::known)
      .def_property_readonly("peak_allocated", [=](const ridgeline::Memory& v) { return whole(v.peak_allocated); })
      .def_property_readonly("peak_reserved", [=](const ridgeline::Memory& v) { return whole(v.peak_reserved); })
      .def_property_readonly("device_used", [=](const ridgeline::Memory& v) { return whole(v.device_used); })
      .def_property_readonly("capacity", [=](const ridgeline::Memory& v) { return whole(v.capacity); })
      .def_readonly("fits", &ridgeline::Memory::fits);

  py::class_<Answer>(m, "Answer")
      .def_property_readonly("title", &Answer::title)
      .def_property_readonly("hardware", &Answer::hardware)
      .def_property_readonly("step", &Answer::step, py::return_value_policy::reference_internal)
      .def_property_readonly("memory", &Answer::memory, py::return_value_policy::reference_internal)
      .def_property_readonly("notes", &Answer::notes)
      .def("_kernels", &kernels_of)
      .def("_timeline", &timeline_of)
      .def("_memory_over_time", &memory_over_time_of)
      .def("json", [](const Answer& a) { return released([&] { return a.json(); }); })
      .def("text", [](const Answer& a) { return released([&] { return a.text(); }); })
      .def("html", [](const Answer& a) { return released([&] { return a.html(); }); })
      .def("chrome_trace", [](const Answer& a) { return released([&] { return a.chrome_trace(); }); })
      .def("memory_snapshot", [](const Answer& a) { return py::bytes(released([&] { return a.memory_snapshot(); })); });
}

}  // namespace

PYBIND11_MODULE(_ridgeline, m) {
  m.doc() = "Ridgeline's library; the package ridgeline is the way to it.";
  m.attr("__version__") = ridgeline::version();

  static py::exception<ridgeline::Mistake> mistake(m, "Mistake", PyExc_ValueError);
  static py::exception<ridgeline::Stopped> stopped(m, "Stopped");
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const ridgeline::Mistake& error) {
      py::object value = py::handle(mistake)(error.what());
      value.attr("file") = error.file();
      value.attr("line") = error.line();
      value.attr("column") = error.column();
      value.attr("key") = error.key();
      PyErr_SetObject(mistake.ptr(), value.ptr());
    } catch (const ridgeline::Stopped& error) {
      PyErr_SetString(stopped.ptr(), error.what());
    }
  });

  add_answers(m);

  py::class_<Question>(m, "Question")
      .def(py::init([](std::string file, std::string text, std::vector<std::string> set, std::string engine,
                       bool advice, bool sensitivity) {
             return Question{std::move(file), std::move(text), std::move(set), std::move(engine), advice, sensitivity};
           }),
           py::kw_only(), py::arg("file") = "", py::arg("text") = "", py::arg("set") = std::vector<std::string>{},
           py::arg("engine") = "analytic", py::arg("advice") = false, py::arg("sensitivity") = false);

  py::class_<Simulator>(m, "Simulator")
      .def(py::init<>())
      .def(
          "predict",
          [](const Simulator& s, const Question& question) { return released([&] { return s.predict(question); }); },
          py::arg("question"))
      .def(
          "compare",
          [](const Simulator& s, const std::vector<Question>& questions, const std::vector<std::string>& labels) {
            return released([&] { return s.compare(questions, labels); });
          },
          py::arg("questions"), py::arg("labels") = std::vector<std::string>{})
      .def(
          "fit", [](const Simulator& s, const Question& question) { return released([&] { return s.fit(question); }); },
          py::arg("question"))
      .def(
          "plan",
          [](const Simulator& s, const Question& question, const std::vector<std::int64_t>& gpus, std::int64_t batch,
             int threads) { return released([&] { return s.plan(question, gpus, batch, threads); }); },
          py::arg("question"), py::arg("gpus"), py::arg("batch") = 0, py::arg("threads") = 0)
      .def(
          "sweep",
          [](const Simulator& s, const std::string& file, int threads) {
            return released([&] { return s.sweep(file, threads); });
          },
          py::arg("file"), py::arg("threads") = 0)
      .def(
          "kernels",
          [](const Simulator& s, const std::string& cases, const std::string& hardware,
             const std::vector<std::string>& set, const std::string& engine, const std::string& software) {
            return released([&] { return s.kernels(cases, hardware, set, engine, software); });
          },
          py::arg("cases"), py::arg("hardware"), py::arg("set"), py::arg("engine"), py::arg("software"))
      .def(
          "memory",
          [](const Simulator& s, const std::string& file, const std::string& settings, const std::string& capacity) {
            return released([&] { return s.memory(file, settings, capacity); });
          },
          py::arg("file"), py::arg("settings") = "", py::arg("capacity") = "")
      .def("hardware", &Simulator::hardware)
      .def("models", &Simulator::models);
  // pybind11 looks numpy up in a static variable, and importing numpy gives the interpreter's lock away: two threads
  // must not come here at once (_answers.py).
  m.def("load_numpy", [] { py::detail::npy_api::get(); });
}
