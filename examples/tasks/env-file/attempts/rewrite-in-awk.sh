# Right: the reader is written anew, appended so that the later definition holds.
set -eu
cat >>lib/read.sh <<'SOURCE'

# Prints the value of a key: the last line wins, everything behind the first "=" counts.
get_value() {
  value=$(awk -v key="$1=" 'index($0, key) == 1 { found = 1; value = substr($0, length(key) + 1) }
    END { if (!found) exit 1; print value }' "$2") || return 1
  strip_quotes "$value"
}
SOURCE
make check
