# How far each status file goes now: what an earlier run has left there must never speak for this one.
_tao_note_files() {
  echo "run $_tao_restart"
  LC_ALL=C timeout 60 find -H "$_tao_results" -maxdepth 3 ! -path '*[[:cntrl:]]*' -name status.json -type f \
    -printf '%i %s %p\n' 2>/dev/null </dev/null
  echo
}
if ! _tao_note_files | _tao_keep "$_tao_state/.status_from.$_tao_id" \
  || ! mv -f -- "$_tao_state/.status_from.$_tao_id" "$_tao_state/status_from"; then
  _tao_no_room
fi
