# Reading: sourced by bin/env-file.

# Prints the last line of a key, whole. Fails if there is none.
last_line() {
  grep "^$1=" "$2" | tail -n 1 | grep .
}

# Takes one pair of quotes off a value.
strip_quotes() {
  case $1 in
  \"*\") stripped=${1#\"} && printf '%s\n' "${stripped%\"}" ;;
  \'*\') stripped=${1#\'} && printf '%s\n' "${stripped%\'}" ;;
  *) printf '%s\n' "$1" ;;
  esac
}

# Prints the value of a key.
get_value() {
  line=$(last_line "$1" "$2") || return 1
  value=$(printf '%s\n' "$line" | cut -d= -f2)
  strip_quotes "$value"
}

# Prints the keys, in the order of their first line.
list_keys() {
  sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p' "$1" | awk '!seen[$0]++'
}
