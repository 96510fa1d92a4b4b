# shellcheck shell=bash
# MariaDB (socket only), slurmdbd, and the associations that Slurm enforces.

readonly CLUSTER=sandbox
readonly MARIADB_SOCKET=$VIEW/run/mysql/socket

mariadb_up() {
  alive mariadbd && return
  local data=$SANDBOX_DIR/state/mysql
  # An interrupted first start leaves a directory without this file.
  if [[ ! -e $data/.installed ]]; then
    rm -rf "$data"
    owned mysql -m 700 "$data"
    inside munged mariadb-install-db --no-defaults --user=mysql --datadir="$VIEW/state/mysql" \
      --skip-test-db --auth-root-authentication-method=socket \
      >"$SANDBOX_DIR/log/mariadb-install.log" 2>&1 ||
      die "mariadb-install-db failed; see $SANDBOX_DIR/log/mariadb-install.log"
    touch "$data/.installed"
  fi
  launch mariadbd ctl mariadbd --no-defaults --user=mysql --datadir="$VIEW/state/mysql" \
    --socket="$MARIADB_SOCKET" --pid-file="$VIEW/run/mysql/pid" --skip-networking \
    --innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=0 --innodb-flush-method=nosync \
    --innodb-buffer-pool-size=128M --innodb-log-file-size=64M --innodb-lock-wait-timeout=900 \
    --performance-schema=OFF --skip-log-bin --max-allowed-packet=64M
  await_daemon mariadbd 30 mariadb_sql 'select 1'
  mariadb_sql "create database if not exists slurm_acct;
    create user if not exists slurm@localhost identified via unix_socket;
    grant all on slurm_acct.* to slurm@localhost;"
}

mariadb_sql() {
  inside munged mariadb --no-defaults --socket="$MARIADB_SOCKET" -e "$1"
}

slurmdbd_up() {
  alive slurmdbd && return
  launch slurmdbd ctl env "MYSQL_UNIX_PORT=$MARIADB_SOCKET" \
    setpriv --reuid=slurm --regid=slurm --init-groups slurmdbd -D
  await_daemon slurmdbd 30 inside munged sacctmgr -n -P list cluster format=cluster
}

associations_make() {
  local known
  known=$(inside munged sacctmgr -n -P list user format=user)
  if [[ $known != *"$LOGIN_USER"* || $known != *"$OTHER_USER"* ]]; then
    # One process for the four commands: each start of sacctmgr takes half a second.
    inside munged sacctmgr -i >"$SANDBOX_DIR/log/associations.log" 2>&1 <<SACCTMGR ||
add cluster $CLUSTER
add account $ACCOUNT cluster=$CLUSTER description=tao organization=tao
add user $LOGIN_USER,$OTHER_USER account=$ACCOUNT cluster=$CLUSTER
quit
SACCTMGR
      die "sacctmgr failed; see $SANDBOX_DIR/log/associations.log"
  fi
}
