# Right: the sign becomes the level above the power, and an exponent may have a sign.
set -eu
ls src tests
git log --oneline
cat README.md
make test || true
python3 - <<'PYTHON'
from pathlib import Path

path = Path("src/parser.cpp")
text = path.read_text()
for place in ("double value = power()", "value *= power()", "value /= power()"):
    text = text.replace(place, place.replace("power", "sign"))
text = text.replace("const double base = sign();", "const double base = atom();")
text = text.replace("std::pow(base, power())", "std::pow(base, sign())")
text = text.replace("return -sign();\n        return atom();", "return -sign();\n        return power();")
path.write_text(text)
PYTHON
git diff
make test
