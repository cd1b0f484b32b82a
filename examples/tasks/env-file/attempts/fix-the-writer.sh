# Wrong: believes that the file is written badly and escapes there; reading stays as it was.
set -u
make check
sed -i "s/    printf '%s=%s.n' \"\$1\" \"\$2\"/    printf '%s=\"%s\"\\\\n' \"\$1\" \"\$2\"/" lib/write.sh
git diff
make check
