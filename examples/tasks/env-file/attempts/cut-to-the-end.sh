# Right: one character.
set -eu
ls -l bin lib tests
git log --oneline
make check || true
grep -rn "cut" lib
sed -i 's/cut -d= -f2)/cut -d= -f2-)/' lib/read.sh
git diff
make check
