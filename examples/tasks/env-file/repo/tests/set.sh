test_set_adds() {
  "$ENV_FILE" set A 1 file
  same A=1 "$(cat file)"
}

test_set_replaces_and_keeps_the_rest() {
  printf '# top\nA=1\nB=2\n' >file
  "$ENV_FILE" set A 3 file
  same "# top
B=2
A=3" "$(cat file)"
}

test_set_then_get_special_characters() {
  value='a/b&c\d $HOME `x`'
  "$ENV_FILE" set A "$value" file
  same "$value" "$("$ENV_FILE" get A file)"
}

test_unset_removes() {
  printf 'A=1\nAB=2\n' >file
  "$ENV_FILE" unset A file
  same AB=2 "$(cat file)"
}

test_refuses_a_bad_key() {
  "$ENV_FILE" set 'A B' 1 file 2>/dev/null
  same 2 $?
}
