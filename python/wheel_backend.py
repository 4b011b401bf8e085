"""Makes the wheel: the package, its compiled module and the descriptions that it reads.

pip calls it (`pip install ./python`), and so does `./dev wheel`. It needs Python's standard library alone, no network, and
what the program's build needs (../dev). RIDGELINE_BUILD names a build folder whose module is taken as it is.
"""
import base64
import hashlib
import os
import pathlib
import subprocess
import sys
import sysconfig
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "pip"  # nothing is written beside the sources
DESCRIPTIONS = {".yaml", ".json", ".block"}  # of hw, models and scenarios, beside the sources of the microkernels
DATA = ("kernel_names.json", "output_schema.json")


def version():
    """CMakeLists.txt has the number."""
    for line in (ROOT / "CMakeLists.txt").read_text().splitlines():
        if line.startswith("project(ridgeline VERSION "):
            return line.split()[2]
    raise SystemExit("no version in CMakeLists.txt")


def compiled_module():
    """The compiled module: that of RIDGELINE_BUILD, or one built now for this interpreter."""
    if given := os.environ.get("RIDGELINE_BUILD"):
        build = pathlib.Path(given)
    else:
        build = BUILD
        run = lambda *command: subprocess.run([str(word) for word in command], check=True)
        if not (build / "build.ninja").exists():
            run("cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_UNITY_BUILD=ON",
                f"-DPython3_EXECUTABLE={sys.executable}", "-DRIDGELINE_BENCHMARKS=OFF", "-DRIDGELINE_PROBE=OFF", "-DRIDGELINE_MPI=OFF")
        run("cmake", "--build", build, "--target", "_ridgeline")
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    modules = list((build / "python" / "ridgeline").glob("_ridgeline*.so"))
    if len(modules) != 1 or not modules[0].name.endswith(suffix):
        raise SystemExit(f"{build}/python/ridgeline holds {[m.name for m in modules]}, one module for {suffix} is needed")
    return modules[0]


def files():
    """Name in the wheel and place on the disk of every file."""
    for file in sorted((ROOT / "python/ridgeline").rglob("*")):
        if file.suffix in {".py", ".pyi", ".typed"} or file.name == "py.typed":
            yield f"ridgeline/{file.relative_to(ROOT / 'python/ridgeline')}", file
    module = compiled_module()
    yield f"ridgeline/{module.name}", module
    for folder in ("hw", "models", "scenarios"):
        for file in sorted((ROOT / folder).rglob("*")):
            if file.is_file() and file.suffix in DESCRIPTIONS:
                yield f"ridgeline/share/ridgeline/{file.relative_to(ROOT)}", file
    for name in DATA:
        yield f"ridgeline/share/ridgeline/data/{name}", ROOT / "data" / name


def tag():
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return f"{python}-{python}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def metadata():
    return (f"Metadata-Version: 2.1\nName: ridgeline\nVersion: {version()}\n"
            "Summary: Time and memory of a transformer's training step on a described GPU\n"
            "License: Apache-2.0\nRequires-Python: >=3.9\nProvides-Extra: arrays\nRequires-Dist: numpy; extra == \"arrays\"\n")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = f"ridgeline-{version()}-{tag()}.whl"
    info = f"ridgeline-{version()}.dist-info"
    record = []

    def add(archive, place, data, executable=False):
        entry = zipfile.ZipInfo(place, (1980, 1, 1, 0, 0, 0))  # the same files make the same wheel
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o755 if executable else 0o644) << 16
        archive.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{place},sha256={digest},{len(data)}\n")

    with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, "w") as archive:
        for place, file in files():
            add(archive, place, file.read_bytes(), file.suffix == ".so")
        for licence in ("LICENSE", "NOTICE"):
            add(archive, f"{info}/licenses/{licence}", (ROOT / licence).read_bytes())
        add(archive, f"{info}/METADATA", metadata().encode())
        add(archive, f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: ridgeline\nRoot-Is-Purelib: false\nTag: {tag()}\n".encode())
        add(archive, f"{info}/RECORD", "".join(record + [f"{info}/RECORD,,\n"]).encode())
    return name


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit("a source distribution would lack the simulator: install from the source tree")


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "wheel")
    folder.mkdir(parents=True, exist_ok=True)
    print(folder / build_wheel(folder))
