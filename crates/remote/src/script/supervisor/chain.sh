
# A chain of attempts: each queues the next one, which Slurm starts if this one does not succeed. So the job goes on while the service
# is away. The script of a queued attempt gets the number of the attempt.
_tao_name_of() { if (($1 == 1)); then echo "$_tao_first_name"; else echo "$_tao_first_name-r$1"; fi; }
# Reads a marker that the Slurm job of the attempt before ($1) has written. $2: its name. Sets its third field and the fourth.
_tao_reads_before() {
  local id=''
  [ -f "$_tao_before/$2" ] || return 1
  read -r -d '' -n 400 id _ _tao_word _tao_time _ <"$_tao_before/$2"
  [ "$id" = "$1" ] && [[ $_tao_word =~ ^[0-9]+$ ]]
}
# Prints how the Slurm job of the attempt before ($1) ended, and when. The controller forgets a job after some minutes, and gives ids
# again if it loses its state.
_tao_end_before() {
  local name told
  name=$(_tao_name_of "$((_tao_no - 1))")
  told=$(SLURM_TIME_FORMAT=%s timeout 60 scontrol -o show job "$1" 2>/dev/null </dev/null)
  if [[ $told =~ ^JobId=$1\ JobName=$name\ .*\ JobState=([A-Z_]+)\ .*\ EndTime=([^ ]+) ]]; then
    echo "${BASH_REMATCH[1]} ${BASH_REMATCH[2]}"
    return
  fi
  told=$'\n'$(SLURM_TIME_FORMAT=%s timeout 60 sacct -X -n -P -j "$1" -o JobName,State,End 2>/dev/null </dev/null)
  if [[ $told =~ $'\n'"$name|"([A-Z_]+)[^|]*"|"([^$'\n']+) ]]; then echo "${BASH_REMATCH[1]} ${BASH_REMATCH[2]}"; fi
}
# Whether the newest status line says that the job has ended, whatever Slurm says.
_tao_has_reported() {
  local file line
  file=$(LC_ALL=C timeout 60 find -H "$_tao_results" -maxdepth 3 ! -path '*[[:cntrl:]]*' -name status.json -type f \
    -printf '%T@ %p\n' 2>/dev/null </dev/null | sort -n | tail -n 1)
  [ -n "$file" ] || return 1
  line=$(timeout 60 tail -c 65536 -- "${file#* }" 2>/dev/null | LC_ALL=C grep -aoE '"status"[[:blank:]]*:[[:blank:]]*"[A-Z]+"' \
    | grep -E '"(STARTED|RUNNING|SUCCESS|FAILURE)"' | tail -n 1)
  [[ $line == *SUCCESS* || $line == *FAILURE* ]]
}
# Reads how long the job has run before an attempt. $1: its state directory.
_tao_reads_used() {
  [ -f "$1/used" ] || return 1
  read -r -d '' -n 400 _tao_used _ <"$1/used"
  [[ $_tao_used =~ ^[0-9]+$ ]]
}
# Whether this attempt is to run: the one before was not short, it ended as the restart policy lists, and time is left. The service
# decides about every other end.
_tao_goes_on() {
  local id end began ended least=10
  id=$(readlink -- "$_tao_before/run")
  [[ $id =~ ^[1-9][0-9]*$ ]] || return 1
  # Its work is done, whatever Slurm says: a controller that was away at its end lets its time run out.
  if _tao_reads_before "$id" exit && [ "$_tao_word" = 0 ] || _tao_has_reported; then return 1; fi
  _tao_reads_before "$id" started || return 1
  began=$_tao_word
  read -r end ended <<<"$(_tao_end_before "$id")"
  if [ "${end:-FAILED}" = FAILED ]; then
    _tao_reads_before "$id" exit || return 1
    end=$_tao_word ended=$_tao_time
    if [ "$end" != 124 ]; then least=60; elif _tao_reads_before "$id" limited; then end=TIMEOUT; fi
  fi
  [[ $ended =~ ^[0-9]+$ && " $_tao_causes " == *" $end "* ]] && ((ended - began >= least)) || return 1
  _tao_reads_used "$_tao_before" || return 1
  # The clocks of a node and of the controller may differ.
  ((_tao_used += ended - began < _tao_wall ? ended - began : _tao_wall, _tao_most - _tao_used >= 10))
}
# Queues the next attempt, unless this one may use up the time of the job, or the service has begun that attempt. Slurm deletes it if this
# attempt succeeds. What Slurm has set for this job is not for that one.
_tao_queue_next() {
  local next=$((_tao_no + 1)) state=${_tao_state%/*}/$((_tao_no + 1)) conf=${SLURM_CONF-} id
  if ((_tao_most - _tao_used - _tao_wall < 10)) || ! mkdir -- "$state" 2>/dev/null || ! true >"$state/submit.1"; then return; fi
  unset "${!SLURM_@}" "${!SBATCH_@}" "${!SRUN_@}"
  if [ -n "$conf" ]; then export SLURM_CONF=$conf; fi
  id=$(timeout 120 sbatch --parsable --job-name="$(_tao_name_of "$next")" --output="$state/main.out" --error="$state/main.err" \
    --dependency="afternotok:$_tao_id" --kill-on-invalid-dep=yes "$_tao_script" "$next" </dev/null)
  id=${id%%;*}
  if [[ $id =~ ^[1-9][0-9]*$ ]]; then
    echo "$id" >"$state/slurm_id"
  else
    echo "tao-slurm: attempt $next could not be queued; when this one ends, the service submits it" >&2
  fi
}
if (($#)); then
  readonly _tao_before=${_tao_state%/*}/$((_tao_no - 1))
  # A controller that has lost its last seconds starts it again: then it has decided before.
  if [ "$(readlink -- "$_tao_state/run")" = "$SLURM_JOB_ID" ]; then
    _tao_reads_used "$_tao_state"
  elif ! _tao_goes_on; then
    echo "tao-slurm: attempt $_tao_no has nothing to do: the one before has not ended as the restart policy lists" >&2
    exit 113
  fi
  if ((_tao_limit > _tao_most - _tao_used)); then ((_tao_limit = _tao_most - _tao_used)); fi
  if ((_tao_warning > _tao_limit / 2)); then ((_tao_warning = _tao_limit / 2)); fi
fi
