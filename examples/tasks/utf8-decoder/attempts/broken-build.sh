# Wrong: the right idea with a bracket left out, never compiled.
set -eu
sed -i 's/    if (point > 0x10FFFF)/    if (point > 0x10FFFF || (need == 2 \&\& point < 0x80)/' src/decode.c
git diff
echo "looks right, done"
