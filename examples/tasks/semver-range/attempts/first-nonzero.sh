# Right: the part that is raised is the first one that is not zero.
set -eu
ls lib test
git log --format='%h %s'
npm --version >/dev/null 2>&1 || echo "no npm here, node alone will do"
node test/range.test.js || true
grep -n "caret" -r lib README.md
python3 - <<'PYTHON'
from pathlib import Path

path = Path("lib/comparators.js")
text = path.read_text()
path.write_text(
    text.replace(
        "  return between(base, version(base.major + 1, 0, 0));\n",
        "  const parts = [base.major, base.minor, base.patch];\n"
        "  const first = parts.findIndex((part) => part !== 0);\n"
        "  const raised = first === -1 ? 2 : first;\n"
        "  const high = parts.map((part, i) => (i < raised ? part : i === raised ? part + 1 : 0));\n"
        "  return between(base, version(...high));\n",
    )
)
PYTHON
node test/range.test.js
