"""pip install --no-build-isolation ./python: builds the extension with CMake and packs it with the descriptions it reads.

Needs what the program's build needs (see ../dev) and pybind11; no network.
"""
import os
import pathlib
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).resolve().parent.parent


class CMakeBuild(build_ext):
    def build_extension(self, extension):
        package = pathlib.Path(self.get_ext_fullpath(extension.name)).resolve().parent
        build = pathlib.Path(os.environ.get("RIDGELINE_BUILD", pathlib.Path(self.build_temp).resolve()))
        run = lambda *command: subprocess.run([str(word) for word in command], check=True)
        if not (build / "build.ninja").exists():
            run("cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_UNITY_BUILD=ON",
                f"-DPython3_EXECUTABLE={sys.executable}", "-DRIDGELINE_BENCHMARKS=OFF", "-DRIDGELINE_PROBE=OFF", "-DRIDGELINE_MPI=OFF")
        run("cmake", "--build", build, "--target", "_ridgeline")
        package.mkdir(parents=True, exist_ok=True)
        for file in (build / "python" / "ridgeline").glob("_ridgeline*.so"):
            self.copy_file(str(file), str(package / file.name))
        for folder in ("hw", "models", "scenarios"):
            self.copy_tree(str(ROOT / folder), str(package / "share" / "ridgeline" / folder))
        data = package / "share" / "ridgeline" / "data"
        data.mkdir(parents=True, exist_ok=True)
        self.copy_file(str(ROOT / "data" / "kernel_names.json"), str(data / "kernel_names.json"))


def version():
    """CMakeLists.txt has the number."""
    for line in (ROOT / "CMakeLists.txt").read_text().splitlines():
        if line.startswith("project(ridgeline VERSION "):
            return line.split()[2]
    raise SystemExit("no version in CMakeLists.txt")


setup(name="ridgeline", version=version(), description="Time and memory of a transformer's training step on a described GPU",
      python_requires=">=3.9", packages=["ridgeline"], package_data={"ridgeline": ["*.pyi", "py.typed"]},
      ext_modules=[Extension("ridgeline._ridgeline", [])], cmdclass={"build_ext": CMakeBuild}, install_requires=["numpy"],
      zip_safe=False)
