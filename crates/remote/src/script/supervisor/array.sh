
# A task of an array has a state directory and results of its own. Its parameters are a line in the list of the attempt: the index, the parameters
# as JSON, and `NAME=value` for each that is a variable; all values in base64.
_tao_no_task() { # $1: the reason, $2: the code
  echo "tao-slurm: task $TAO_TASK stops here: $1" >&2
  exit "${2-121}"
}
# The attempt belongs to one array; its first task claims it. "no-owner": it was given up before it reached Slurm.
if ! ln -sT -- "${SLURM_ARRAY_JOB_ID:?}" "$_tao_attempt/run" 2>/dev/null; then
  _tao_owner=$(readlink -- "$_tao_attempt/run")
  if [ "$_tao_owner" != "$SLURM_ARRAY_JOB_ID" ]; then
    _tao_no_task "the attempt belongs to job ${_tao_owner:-(its claim cannot be made)}" 120
  fi
fi
mkdir -- "$_tao_state" 2>/dev/null
mkdir -p -- "$_tao_results" || _tao_no_task "the directory $_tao_results cannot be made"
for _tao_stream in out err; do
  # Slurm has opened these.
  if [ ! -e "$_tao_state/main.$_tao_stream" ]; then
    ln -- "$_tao_attempt/$SLURM_ARRAY_TASK_ID.$_tao_stream" "$_tao_state/main.$_tao_stream" 2>/dev/null \
      || ln -s -- "$_tao_attempt/$SLURM_ARRAY_TASK_ID.$_tao_stream" "$_tao_state/main.$_tao_stream"
  fi
done
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
