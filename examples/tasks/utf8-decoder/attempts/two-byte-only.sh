# Wrong: the two-byte forms are refused, the longer ones are not.
set -u
make test
sed -i 's/    if ((first \& 0xE0) == 0xC0)/    if ((first \& 0xE0) == 0xC0 \&\& first >= 0xC2)/' src/decode.c
git diff
make test
