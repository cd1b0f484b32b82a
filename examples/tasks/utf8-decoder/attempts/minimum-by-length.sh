# Right: each length has a least code point.
set -eu
ls -l . src tests
git log --oneline
make test || true
grep -n "0x10FFFF" src/decode.c
sed -i '/static const unsigned char first_mask/a\    static const int32_t least[] = {0, 0, 0x80, 0x800, 0x10000};' src/decode.c
sed -i 's/    if (point > 0x10FFFF)/    if (point < least[need] || point > 0x10FFFF)/' src/decode.c
git diff
make test
