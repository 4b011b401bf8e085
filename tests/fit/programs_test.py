"""The programs of fit/ that are not the fitting program: they pass what is committed, and fail where a number is another one."""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def run(script, *options):
    return subprocess.run([sys.executable, "-B", ROOT / "fit" / f"{script}.py", *options], capture_output=True, text=True)


def check_with(script, option, file, pattern, replaced):
    """Exit code of the check of a copy of `file` in which a number is another one."""
    text = (ROOT / file).read_text()
    changed, count = re.subn(pattern, replaced, text, count=1)
    assert count == 1, f"{file} has no {pattern}"
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / pathlib.Path(file).name
        copy.write_text(changed)
        return run(script, "--check", option, copy).returncode


def main():
    h200, host, menus = "hw/nvidia-h200-sxm-141gb.yaml", "hw/hosts/default.yaml", "docs/kernel-menus.md"
    speed = "sim/study/validation/host_speed.cpp"
    measured = r"(\nmeasured:(?:.|\n)*?\n    {}: {{value: )[0-9.]+"
    cases = [("power", "--hardware", h200, r"(\nmeasured:)", r"\1", 0),
             ("host_costs", "--host", host, r"(clip_fixed)", r"\1", 0),
             ("kernel_menus", "--document", menus, r"(kSimt)", r"\1", 0),
             ("host_costs", "--host", host, r"(clip_fixed: {value: )\d+", r"\g<1>300", 1),
             ("host_costs", "--host", host, r"(compiled_call: {value: )[\d.]+", r"\g<1>7.14", 1),
             ("host_costs", "--host", host, r"(fsdp_gather: {value: )[\d.]+", r"\g<1>300", 1),
             ("host_costs", "--speed", speed, r"(kReadingOff = )[\d.]+", r"\g<1>0.16", 1),
             ("kernel_menus", "--document", menus, r"(kWgmmaHalf \| )50", r"\g<1>51", 1)]
    cases += [("power", "--hardware", h200, measured.format(name), rf"\g<1>{value}", 1)
              for name, value in (("idle", 118), ("tensor_bf16", 1.18), ("knee", 1120))]
    wrong = [case for case in cases if check_with(*case[:-1]) != case[-1]]
    for script, option, *_ in wrong:
        print(f"fit/{script}.py --check {option} does not say {_[-1]} of {_[:-1]}")
    # What the programs write into a copy is what they then pass.
    for script, option, file in (("power", "--hardware", h200), ("host_costs", "--host", host), ("kernel_menus", "--document", menus)):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "copy"
            copy.write_text((ROOT / file).read_text().replace("value: 5.5 us", "value: 9.9 us"))
            if run(script, option, copy).returncode or run(script, "--check", option, copy).returncode:
                wrong.append(script)
                print(f"fit/{script}.py does not pass what it writes")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
