
# After the claim: a task that has run returns its code again, although a full disk has no room for its parameters now.
mkdir -p -- "$_tao_results" || _tao_no_task "the directory $_tao_results cannot be made"
# Its parameters are a line in the list of the attempt: the index, the parameters as JSON, and `NAME=value` for each that is a variable;
# all values in base64.
_tao_parameters() {
  # Its own names are no parameter's.
  local _tao_index='' _tao_json _tao_pairs _tao_pair _tao_value
  while read -r _tao_index _tao_json _tao_pairs && [ "$_tao_index" != "$SLURM_ARRAY_TASK_ID" ]; do :; done <"$_tao_attempt/tasks.list"
  if [ "$_tao_index" != "$SLURM_ARRAY_TASK_ID" ]; then _tao_no_task "its parameters are not in $_tao_attempt/tasks.list"; fi
  if ! { printf '%s' "$_tao_json" | base64 -d >"$_tao_state/.parameters" && mv -f -- "$_tao_state/.parameters" "$TAO_TASK_FILE"; }; then
    _tao_no_task "$TAO_TASK_FILE cannot be written"
  fi
  for _tao_pair in $_tao_pairs; do
    # The last character keeps newlines at the end.
    _tao_value=$(printf '%s' "${_tao_pair#*=}" | base64 -d && echo .) || _tao_no_task 'a parameter cannot be read'
    export "${_tao_pair%%=*}=${_tao_value%.}"
  done
}
_tao_parameters
