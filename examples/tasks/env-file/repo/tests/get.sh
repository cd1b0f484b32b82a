test_get_plain() {
  printf 'A=1\nB=two\n' >file
  same two "$("$ENV_FILE" get B file)"
}

test_get_missing_is_an_error() {
  printf 'A=1\n' >file
  ! "$ENV_FILE" get B file
}

test_get_last_line_wins() {
  printf 'A=1\nA=2\n' >file
  same 2 "$("$ENV_FILE" get A file)"
}

test_get_takes_quotes_off() {
  printf 'A="with spaces"\n' >file
  same 'with spaces' "$("$ENV_FILE" get A file)"
}

test_get_value_with_equals_signs() {
  printf 'URL=postgres://db/app?sslmode=require&pool=5\n' >file
  same 'postgres://db/app?sslmode=require&pool=5' "$("$ENV_FILE" get URL file)"
}

test_get_value_that_ends_with_equals_signs() {
  printf 'TOKEN="c2VjcmV0IQ=="\n' >file
  same 'c2VjcmV0IQ==' "$("$ENV_FILE" get TOKEN file)"
}

test_keys_in_order() {
  printf '# settings\nB=1\n\nA=2\nB=3\n' >file
  same "B
A" "$("$ENV_FILE" keys file)"
}
