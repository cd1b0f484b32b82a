# Runs test files: sh tests/run.sh FILE... Each test is a function named test_*; each runs in an empty directory.
set -u

export ENV_FILE="$PWD/bin/env-file"
failed=0
ran=0

# same WANTED GOT
same() {
  [ "$1" = "$2" ] && return 0
  echo "    wanted: $1"
  echo "    got:    $2"
  exit 1
}

for file in "$@"; do
  if [ ! -f "$file" ]; then
    echo "no such test file: $file"
    exit 1
  fi
  . "./$file"
  for name in $(sed -n 's/^\(test_[a-z_]*\)().*/\1/p' "$file"); do
    directory=$(mktemp -d)
    if (cd "$directory" && "$name"); then
      echo "ok   $name"
    else
      echo "FAIL $name"
      failed=$((failed + 1))
    fi
    rm -rf "$directory"
    ran=$((ran + 1))
  done
done

echo "$ran tests, $failed failed"
[ "$ran" -gt 0 ] && [ "$failed" -eq 0 ]
