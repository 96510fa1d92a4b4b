# A program that cancels its own job meets another scancel before the real one. It is written here and not staged: that costs
# nobody who waits for the submission. The one of an earlier run may still be in use, so it is replaced.
_tao_add_scancel() {
  local new=$_tao_state/bin/.scancel.$_tao_id
  mkdir -p -- "$_tao_state/bin" && _tao_keep "$new" && chmod 755 -- "$new" && mv -f -- "$new" "$_tao_state/bin/scancel"
}
_tao_add_scancel <<'_TAO_SCANCEL' || _tao_no_room
