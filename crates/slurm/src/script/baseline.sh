# How far each status file goes now: what an earlier run has left there must never speak for this one.
LC_ALL=C timeout 60 find -H "$_tao_results" -maxdepth 3 ! -path '*[[:cntrl:]]*' -name status.json -type f \
  -printf '%i %s %p\n' >"$_tao_state/.status_from.$_tao_id" 2>/dev/null </dev/null
mv -f -- "$_tao_state/.status_from.$_tao_id" "$_tao_state/status_from"
