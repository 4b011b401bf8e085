"""The Debian packages: each has what is its own, and only that of mpirun asks for MPI's libraries.

usage: debian_packages.py BUILD
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

HOLDS = {"ridgeline": ["/bin/ridgeline", "/share/ridgeline/hw/nvidia-t4.yaml", "/share/ridgeline/python/ridgeline/record/__main__.py", "/share/man/man1/ridgeline.1.gz", "/libridgeline.so."],
         "ridgeline-dev": ["/include/ridgeline/ridgeline.h", "/cmake/ridgeline/ridgelineConfig.cmake"],
         "ridgeline-mpi": ["/ridgeline/libridgeline_mpi.so"],
         "python3-ridgeline": ["/ridgeline/__init__.py", "/ridgeline/record/recorder.py", "/ridgeline/_ridgeline."]}


def said(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def is_hardened(program):
    """Relocations are bound before main and read-only, stacks have canaries, copies of the C library are checked."""
    dynamic, symbols = said("readelf", "-dW", program), said("readelf", "-W", "--dyn-syms", program)
    return ("BIND_NOW" in dynamic or "FLAGS_1" in dynamic and "NOW" in dynamic) and "__stack_chk_fail" in symbols and "_chk@" in symbols.replace("__stack_chk_fail@", "")


def main(build):
    if not shutil.which("dpkg-deb") or not shutil.which("dpkg-shlibdeps"):
        print("no dpkg-deb or no dpkg-shlibdeps: packages are not made")
        return
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(["cpack", "-G", "DEB", "-B", folder, "--config", f"{build}/CPackConfig.cmake"], cwd=build,
                             capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(run.stdout + run.stderr)
        files = {said("dpkg-deb", "-f", str(file), "Package").strip(): str(file) for file in pathlib.Path(folder).glob("*.deb")}
        assert {"ridgeline", "ridgeline-dev"} <= set(files) <= set(HOLDS), sorted(files)
        for package, file in files.items():
            contents, depends = said("dpkg-deb", "-c", file), said("dpkg-deb", "-f", file, "Depends")
            for name in HOLDS[package] + [f"/doc/{package}/copyright", f"/doc/{package}/changelog.gz"]:
                assert name in contents, f"{package} lacks {name}"
            if package in ("ridgeline", "python3-ridgeline") and pathlib.Path(build, "web/NOTICE.txt").exists():
                assert f"/doc/{package}/NOTICE.txt" in contents, f"{package} lacks the licences of the packages in its page"
            if package == "ridgeline" and shutil.which("readelf"):
                said("dpkg-deb", "-x", file, f"{folder}/laid")
                program = next(pathlib.Path(folder, "laid").glob("**/bin/ridgeline"))
                assert is_hardened(program), f"{program.name} is not hardened"
            assert ("mpi" in depends) == (package == "ridgeline-mpi"), f"{package} depends on {depends}"
            assert package == "ridgeline" or "ridgeline (= " in depends, f"{package} depends on {depends}"
    print(f"{len(files)} packages")


main(sys.argv[1])
