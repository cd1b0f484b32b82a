# Writing: sourced by bin/env-file. A file is replaced as a whole, so that a reader never sees half of it.

# Prints the file without the lines of a key.
without_key() {
  [ -e "$2" ] || return 0
  grep -v "^$1=" "$2" || true
}

# Puts standard input in the place of a file.
replace_file() {
  cat >"$1.new"
  mv "$1.new" "$1"
}

set_value() {
  {
    without_key "$1" "$3"
    printf '%s=%s\n' "$1" "$2"
  } | replace_file "$3"
}

unset_value() {
  without_key "$1" "$2" | replace_file "$2"
}
