# Wrong: looks for the part to raise in a loop that never ends when all are zero or the first is not.
set -eu
python3 - <<'PYTHON'
from pathlib import Path

path = Path("lib/comparators.js")
text = path.read_text()
path.write_text(
    text.replace(
        "  return between(base, version(base.major + 1, 0, 0));\n",
        "  const parts = [base.major, base.minor, base.patch];\n"
        "  let at = 0;\n"
        "  while (parts[0] !== 0 || parts[at] === 0) at = (at + 1) % 3;\n"
        "  parts[at]++;\n"
        "  return between(base, version(...parts));\n",
    )
)
PYTHON
git diff --stat
node -e 'console.log(require("./lib").satisfies("0.2.9", "^0.2.3"))'
