"""The Python package beside the program: the same numbers, arrays without copies, mistakes with their place."""
import json
import os
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import ridgeline

PROGRAM = os.environ["RIDGELINE_BINARY"]
SOURCE = os.environ["RIDGELINE_SOURCE_DIR"]
BERT = os.path.join(SOURCE, "scenarios", "bert-large-fp32.yaml")
SMALL = {"hardware": "nvidia-t4", "model": "bert-base", "training": {"micro_batch": 2, "sequence_length": 128}}


def printed(*arguments):
    return subprocess.run([PROGRAM, *arguments], check=True, capture_output=True, text=True).stdout


def without_place(answer):
    """Without the build that made it, as the two may be built one after the other; changes of several keys in any order."""
    kept = {key: value for key, value in answer.items() if key != "tool"}
    if "question" in kept:
        kept["question"] = kept["question"] | {"changes": sorted(kept["question"]["changes"])}
    return kept


def test_ten_lines_predict_bert_large():
    answer = ridgeline.predict(BERT)
    assert 0.01 < answer.step.time < 1
    assert answer.step.low <= answer.step.time <= answer.step.high
    assert answer.memory.fits and answer.memory.peak_allocated <= answer.memory.device_used <= answer.memory.capacity
    assert "BERT" in str(answer) and "ms" in repr(answer)


def test_the_program_says_the_same():
    ours = ridgeline.predict(BERT).to_dict()
    theirs = json.loads(printed("predict", BERT, "--no-advice", "--format", "json"))
    assert without_place(ours) == without_place(theirs)
    changed = json.loads(printed("predict", BERT, "--hardware", "nvidia-t4", "--set", "training.micro_batch=1",
                                 "--no-advice", "--format", "json"))
    assert without_place(ridgeline.predict(BERT, hardware="nvidia-t4", training={"micro_batch": 1}).to_dict()) == \
        without_place(changed)


def test_dicts_yaml_and_changes_are_one_question():
    answer = ridgeline.predict(SMALL)
    assert ridgeline.predict(**SMALL).step.time == answer.step.time
    faster = ridgeline.predict(SMALL, set={"hardware.dram.bandwidth": "640 GB/s"})
    assert faster.step.gpu_busy < answer.step.gpu_busy
    assert ridgeline.predict(SMALL, hardware="nvidia-l4").hardware == "nvidia-l4"


def test_arrays_are_views_that_outlive_the_answer():
    answer = ridgeline.predict(SMALL)
    kernels, timeline, memory = answer.kernels, answer.timeline, answer.memory_over_time
    assert kernels["time_s"].sum() == pytest.approx((timeline["end_s"] - timeline["start_s"]).sum())
    assert kernels["count"].sum() == len(timeline["start_s"]) == answer.step.kernels
    assert memory["allocated"].max() == answer.memory.peak_allocated
    for array in (kernels["time_s"], timeline["start_s"], memory["reserved"]):
        assert not array.flags.owndata and not array.flags.writeable
    assert answer.timeline["start_s"].__array_interface__["data"] == timeline["start_s"].__array_interface__["data"]
    before = timeline["start_s"].copy()
    del answer
    assert np.array_equal(timeline["start_s"], before)


def test_mistakes_have_a_place():
    with pytest.raises(ridgeline.Mistake) as caught:
        ridgeline.predict(SMALL, set={"hardware.dram.bandwith": "4 TB/s"})
    assert "bandwidth" in str(caught.value) and caught.value.key.endswith("bandwith")
    assert isinstance(caught.value, ValueError)
    with pytest.raises(ridgeline.Mistake):
        ridgeline.predict("no/such/file.yaml")
    with pytest.raises(ridgeline.Mistake):
        ridgeline.predict(SMALL, engine="analytical")


def test_compare_fit_and_names():
    sides = ridgeline.compare(SMALL, {**SMALL, "hardware": "nvidia-l4"}, labels=["T4", "L4"])
    answers = [ridgeline.predict(**SMALL), ridgeline.predict(**{**SMALL, "hardware": "nvidia-l4"})]
    assert ridgeline.compare(*answers, labels=["T4", "L4"]) == ridgeline.compare(answers, labels=["T4", "L4"]) == sides
    assert [side["label"] for side in sides["scenarios"]] == ["T4", "L4"]
    assert ridgeline.fit(SMALL)["micro_batch"] > 2
    assert "nvidia-rtx-3090" in ridgeline.hardware() and "bert-large" in ridgeline.models()


def test_plan_is_that_of_the_program():
    plan = ridgeline.plan(SMALL, 2, batch=4)
    assert plan["sequences"] == 4 and plan["cluster"] == "t4-x4-pcie"
    times = [row["step_time_s"] for row in plan["best"]]
    assert times == sorted(times) and plan["ways"][plan["best"][0]["way"]]["gpus"] == 2
    roofline = ridgeline.plan(SMALL, 2, batch=4, engine="roofline")
    assert roofline["best"][0]["step_time_s"] < times[0]
    with pytest.raises(ridgeline.Mistake, match="expected 1 to"):
        ridgeline.plan(SMALL, 0)


def test_kernels_are_those_of_the_program():
    cases = [{"op": "mm", "dtype": "bf16", "params": {"m": 1024, "n": 1024, "k": 512, "layout": "nt"}},
             {"op": "softmax", "dtype": "fp32", "params": {"rows": 1024, "cols": 128}}, {"op": "no such op"}]
    ours = ridgeline.kernels(cases, "nvidia-a100-sxm4-80gb")
    run = subprocess.run([PROGRAM, "kernels", "--hardware", "nvidia-a100-sxm4-80gb", "-"], capture_output=True, text=True,
                         input="\n".join(map(json.dumps, cases)))
    assert ours == [json.loads(line) for line in run.stdout.splitlines()]
    assert "predicted" in ours[1] and "error" in ours[2]


def test_other_threads_run_meanwhile():
    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.perf_counter()
    ridgeline.predict({**SMALL, "model": "bert-large"}, engine="simulate")
    end = time.perf_counter()
    done.set()
    thread.join()
    gaps = np.diff([begin, *[t for t in ticks if begin < t < end], end])
    assert gaps.max() < max(0.2, 0.5 * (end - begin))


def test_a_notebook_of_ten_answers_is_small():
    gpus = ridgeline.hardware()[:10]
    cards = [ridgeline.predict({**SMALL, "hardware": gpu})._repr_html_() for gpu in gpus]
    assert max(map(len, cards)) < 20_000 and sum(map(len, cards)) < 300_000
    for gpu, card in zip(gpus, cards):
        assert gpu in card and "Fits" in card and "tokens/s" in card and "weights" in card
        assert card.count("<div") == card.count("</div>") and "<script" not in card


def test_a_card_says_what_does_not_fit():
    card = ridgeline.predict(hardware="T4", model="llama-3.1-8b", training={"micro_batch": 1, "sequence_length": 64})._repr_html_()
    assert "Does not fit" in card and "With memory enough" in card


def test_the_page_is_shown_in_the_browser(monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    try:
        ridgeline.predict(SMALL).show()
    except ridgeline.Mistake as mistake:
        pytest.skip(str(mistake))  # built without npm
    with open(opened[0].removeprefix("file://"), encoding="utf-8") as page:
        assert "bert-base" in page.read().lower()
    os.remove(opened[0].removeprefix("file://"))


def test_answers_print_and_pickle():
    answer = ridgeline.predict(SMALL)
    for shown in (repr(answer), repr(answer.step), repr(answer.memory)):
        assert "object at" not in shown and len(shown) < 200, shown
    assert "tokens/s" in repr(answer.step) and "GiB" in repr(answer.memory)
    for documented in (ridgeline.Answer, ridgeline.Step, ridgeline.Memory, ridgeline.predict, ridgeline.fit):
        assert documented.__doc__ and not documented.__doc__.startswith(f"{documented.__name__}(")
    again = pickle.loads(pickle.dumps(answer))
    assert again.step == answer.step and again.memory == answer.memory
    assert without_place(again.to_dict()) == without_place(answer.to_dict())
    assert pickle.loads(pickle.dumps(answer.step)) == answer.step


def test_a_pickle_finds_its_file_from_another_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(SOURCE)
    kept = pickle.dumps(ridgeline.predict("scenarios/bert-large-fp32.yaml"))
    monkeypatch.chdir(tmp_path)
    assert "BERT" in pickle.loads(kept).title


def test_fit_needs_no_batch():
    found = ridgeline.fit(hardware="RTX 3090", model="gpt2", training={"sequence_length": 512, "precision": "amp-bf16"})
    said = ridgeline.fit(hardware="RTX 3090", model="gpt2", training={"sequence_length": 512, "precision": "amp-bf16", "micro_batch": 1})
    assert without_place(found) == without_place(said)
    assert without_place(ridgeline.fit({"hardware": "RTX 3090", "model": "gpt2", "training": {
        "sequence_length": 512, "precision": "amp-bf16"}})) == without_place(said)


def test_shipped_descriptions_are_found_by_name_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert ridgeline.predict("bert-large-fp32").step == ridgeline.predict(BERT).step
    assert ridgeline.predict({**SMALL, "hardware": "Tesla T4", "model": "google-bert/bert-base-uncased"}).step == ridgeline.predict(SMALL).step


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
