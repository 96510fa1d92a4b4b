
# Makes the logs of a component ($1). srun 22.05 returns 0 if it cannot open the log of a task, and does not run the task.
_tao_make_logs() {
  if mkdir -p -- "$_tao_logs/$1" && true >>"$_tao_logs/$1/0.out" && true >>"$_tao_logs/$1/0.err"; then return; fi
  _tao_no_record=1
  _tao_stop_here 119 "its logs cannot be written to $_tao_logs/$1"
}
