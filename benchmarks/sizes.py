"""Lines of code of each file: without blank lines, comments, docstrings, `_parameter_constraints` and `__init__`.

python -m benchmarks.sizes            # files over 250 lines and functions over 60
python -m benchmarks.sizes --all      # every file
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "unmix"
FILE, FUNCTION = 250, 60


def code_lines(text: str) -> tuple[int, dict[str, int]]:
    """Lines of a file, and of each of its functions."""
    skip = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skip:
            lines.update(range(token.start[0], token.end[0] + 1))
    functions: dict[str, tuple[int, int]] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                lines -= set(range(first.lineno, (first.end_lineno or 0) + 1))
        if isinstance(node, ast.FunctionDef):
            if node.name == "__init__":
                lines -= set(range(node.lineno, (node.end_lineno or 0) + 1))
            functions[f"{node.name}:{node.lineno}"] = node.lineno, node.end_lineno or 0
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "_parameter_constraints":
            lines -= set(range(node.lineno, (node.end_lineno or 0) + 1))
    return len(lines), {k: sum(a <= i <= b for i in lines) for k, (a, b) in functions.items()}


def main() -> None:
    """Print the sizes."""
    every = "--all" in sys.argv
    for path in sorted(SOURCE.rglob("*.py")):
        total, functions = code_lines(path.read_text())
        long = {k: n for k, n in functions.items() if n > FUNCTION}
        if every or total > FILE or long:
            print(f"{total:4d}  {path.relative_to(SOURCE)}  {long or ''}")


if __name__ == "__main__":
    main()
