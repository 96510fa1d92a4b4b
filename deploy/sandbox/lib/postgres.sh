# shellcheck shell=bash
# The sandbox's own PostgreSQL server, for the service and its tests. Always the host's version.

postgres_up() {
  alive postgres && return
  local bin data=$SANDBOX_DIR/state/postgres
  bin=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -1)
  local as=(setpriv --reuid=postgres --regid=postgres --init-groups)
  if [[ ! -e $data/.installed ]]; then
    rm -rf "$data"
    install -d -o postgres -g postgres -m 700 "$data"
    at_view "${as[@]}" "$bin/initdb" -D "$VIEW/state/postgres" -U postgres -A trust \
      -E UTF8 --locale=C.UTF-8 --no-sync >"$SANDBOX_DIR/log/initdb.log" 2>&1 ||
      die "initdb failed; see $SANDBOX_DIR/log/initdb.log"
    touch "$data/.installed"
  fi
  # After a crash this pid may belong to another process, and postgres would not start.
  rm -f "$data/postmaster.pid" "$SANDBOX_DIR"/run/postgres/.s.PGSQL.*
  launch --host postgres ctl "${as[@]}" "$bin/postgres" -D "$VIEW/state/postgres" \
    -p "$POSTGRES_PORT" -k "$VIEW/run/postgres" -c listen_addresses=127.0.0.1 \
    -c fsync=off -c full_page_writes=off -c max_connections=300 \
    -c shared_preload_libraries=pg_stat_statements -c pg_stat_statements.track=all
  # After a crash it replays its WAL first, which can take minutes. A dead server is detected at once.
  await_daemon postgres 600 postgres_sql 'select 1'
  [[ -n $(postgres_sql "select 1 from pg_database where datname = 'tao_slurm'") ]] ||
    postgres_sql 'create database tao_slurm'
}

postgres_sql() {
  psql -X -h 127.0.0.1 -p "$POSTGRES_PORT" -U postgres -d postgres -Atqc "$1"
}
