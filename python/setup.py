"""pip install --no-build-isolation ./python: builds the extension with CMake and packs it with the descriptions it reads.

Needs what the program's build needs (see ../dev) and pybind11; no network.
"""
import os
import pathlib
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "pip"  # nothing is written beside the sources
DESCRIPTIONS = {".yaml", ".json"}  # of hw, models and scenarios, beside the sources of the microkernels


def built_module(build_temp):
    """The compiled module: that of RIDGELINE_BUILD, a build folder as it is, or one built now."""
    if given := os.environ.get("RIDGELINE_BUILD"):
        build = pathlib.Path(given)
    else:
        build = pathlib.Path(build_temp).resolve()
        run = lambda *command: subprocess.run([str(word) for word in command], check=True)
        if not (build / "build.ninja").exists():
            run("cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_UNITY_BUILD=ON",
                f"-DPython3_EXECUTABLE={sys.executable}", "-DRIDGELINE_BENCHMARKS=OFF", "-DRIDGELINE_PROBE=OFF", "-DRIDGELINE_MPI=OFF")
        run("cmake", "--build", build, "--target", "_ridgeline")
    modules = list((build / "python" / "ridgeline").glob("_ridgeline*.so"))
    if len(modules) != 1:
        raise SystemExit(f"{build}/python/ridgeline holds {len(modules)} compiled modules, one is needed")
    return modules[0]


class CMakeBuild(build_ext):
    def build_extension(self, extension):
        package = pathlib.Path(self.get_ext_fullpath(extension.name)).resolve().parent
        package.mkdir(parents=True, exist_ok=True)
        module = built_module(self.build_temp)
        self.copy_file(str(module), str(package / module.name))
        share = package / "share" / "ridgeline"
        shutil.rmtree(share, ignore_errors=True)
        for folder in ("hw", "models", "scenarios"):
            for file in sorted((ROOT / folder).rglob("*")):
                if file.is_file() and file.suffix in DESCRIPTIONS:
                    copy = share / file.relative_to(ROOT)
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    self.copy_file(str(file), str(copy))
        (share / "data").mkdir(parents=True, exist_ok=True)
        for name in ("kernel_names.json", "output_schema.json"):
            self.copy_file(str(ROOT / "data" / name), str(share / "data" / name))


def version():
    """CMakeLists.txt has the number."""
    for line in (ROOT / "CMakeLists.txt").read_text().splitlines():
        if line.startswith("project(ridgeline VERSION "):
            return line.split()[2]
    raise SystemExit("no version in CMakeLists.txt")


BUILD.mkdir(parents=True, exist_ok=True)
setup(name="ridgeline", version=version(), description="Time and memory of a transformer's training step on a described GPU",
      python_requires=">=3.9", packages=["ridgeline", "ridgeline.record"], package_data={"ridgeline": ["*.pyi", "py.typed"]},
      options={"build": {"build_base": str(BUILD)}, "egg_info": {"egg_base": str(BUILD)}},
      ext_modules=[Extension("ridgeline._ridgeline", [])], cmdclass={"build_ext": CMakeBuild}, install_requires=["numpy"],
      zip_safe=False)
