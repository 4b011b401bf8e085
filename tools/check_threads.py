"""Work that is handed to other threads takes the budget of its question along: check_threads.py SOURCE

Every std::async, std::thread and tbb::parallel_for below sim/ and python/ names with_same_budget in its call, or a callable that
was made by it. FREE lists the calls that belong to no question, each with the reason."""
import pathlib
import re
import sys

FREE = {
    ("sim/app/serve_command.cpp", "std::_Exit"): "ends the program",
    ("sim/mpi/mpi_ranks.cpp", "run_sweep"): "each rank is a process, whose budget the module for MPI does not see",
    ("sim/study/validation/kernel_validation.cpp", "predict"): "questions of the program's own",
    ("sim/study/validation/step_validation.cpp", "out.size()"): "questions of the program's own",
    ("sim/study/validation/published_training.cpp", "out.size()"): "questions of the program's own",
    ("python/module.cpp", "UntilStopped"): "the library makes the budget inside",
}
HANDS_OVER = re.compile(r"(?:std::async|tbb::parallel_for|std::j?thread)\s*(?:\w+\s*)?\(")


def call_at(text, at):
    """The call from its name to the parenthesis that ends it."""
    depth, begin = 0, text.index("(", at)
    for end in range(begin, len(text)):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        if depth == 0:
            return text[at:end + 1]
    return text[at:]


def main():
    root = pathlib.Path(sys.argv[1])
    wrong, used = [], set()
    for path in sorted([*root.glob("sim/**/*.cpp"), *root.glob("sim/**/*.h"), *root.glob("python/*.cpp")]):
        name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
        text = re.sub(r"//[^\n]*", lambda m: " " * len(m[0]), text)
        carried = set(re.findall(r"(\w+)\s*=\s*with_same_budget\(", text))
        for match in HANDS_OVER.finditer(text):
            call = call_at(text, match.start())
            if "with_same_budget" in call or any(re.search(rf"\b{one}\b", call) for one in carried):
                continue
            reasons = [key for key in FREE if key[0] == name and key[1] in call]
            used.update(reasons)
            if not reasons:
                wrong.append(f"{name}:{text.count(chr(10), 0, match.start()) + 1}: work without the budget of its question (with_same_budget)")
    wrong += [f"{name}: no call with '{sign}' is left; take it out of tools/check_threads.py" for name, sign in FREE if (name, sign) not in used]
    print("\n".join(wrong) if wrong else "all work that is handed over keeps its budget")
    sys.exit(1 if wrong else 0)


main()
