# Right by another way: what was read must be as long as what would be written.
set -eu
cat src/utf8.h src/encode.c
python3 - <<'PYTHON'
from pathlib import Path

path = Path("src/decode.c")
text = path.read_text()
last = "    *used = need;\n"
check = (
    "    unsigned char shortest[UTF8_LENGTH_MAX];\n"
    "    if (utf8_encode(point, shortest) != need)\n"
    "        return UTF8_INVALID;\n\n"
)
path.write_text(text.replace(last, check + last))
PYTHON
make test
git -c user.name=agent -c user.email=agent@example.invalid commit -qam "Refuse overlong sequences"
