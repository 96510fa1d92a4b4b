# shellcheck shell=bash disable=SC2034,SC2154 # `work` and `machine` are the caller's
# A second API and a second worker, as a second host has them: own units, an own program, own ports. And the clients of all.

readonly SECOND_UNITS=(tao-slurm-api-2 tao-slurm-worker-2) SECOND_PROGRAM=/opt/second/tao-slurm
readonly ALL_PORTS=(8080 8081 8082 8083) SECOND_PORTS=(8082 8083)

# The units of the document, for the second host.
second_prepare() {
    local unit
    for unit in migrate api worker; do
        sed -e "s|/usr/local/bin/tao-slurm|$SECOND_PROGRAM|; s/tao-slurm-migrate/tao-slurm-migrate-2/; s/127.0.0.1:8081/127.0.0.1:8083/" \
            -e 's/^Environment=/&TAO_SLURM_BIND=127.0.0.1:8082 /' \
            "$machine/etc/systemd/system/tao-slurm-$unit.service" >"$machine/etc/systemd/system/tao-slurm-$unit-2.service"
    done
    in_machine systemctl daemon-reload
}

# second_start after|newer: installs the program on the second host and restarts its units, as the document does on the first.
second_start() {
    install -D -m 755 "$work/program.$1" "$machine$SECOND_PROGRAM.new"
    mv "$machine$SECOND_PROGRAM.new" "$machine$SECOND_PROGRAM"
    in_machine systemctl restart tao-slurm-migrate-2 "${SECOND_UNITS[@]}"
}

second_runs() { run_program "$1" "${SECOND_UNITS[@]}"; }
all_run() { both_run "$1" && second_runs "$1"; }

# The command of the document must name the program that has to stop.
back_is_refused() {
    if document_try back; then return 1; fi
    note "$(tail -n 1 "$work/said.aside")"
    grep --quiet "tao-slurm [0-9.]* schema $((schema + 1)) from 127.0.0.1" "$work/said.aside" && schema_is "$((schema + 1))"
}

schema_is() { [[ $(in_machine env --chdir=/ su postgres -c "psql -d tao_slurm -At -c 'select max(version) from _sqlx_migrations'") == "$1" ]]; }

# Makes an authority, and a certificate for the proxy.
certificates_make() {
    mkdir -p "$work/tls"
    (
        cd "$work/tls"
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj '/CN=trial authority' \
            -keyout authority.key -out authority.pem
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj '/CN=tao-slurm.test' \
            -addext subjectAltName=DNS:tao-slurm.test,IP:127.0.0.1 -addext basicConstraints=critical,CA:false \
            -CA authority.pem -CAkey authority.key -keyout key.pem -out certificate.pem
    ) 2>"$work/tls.log" || die "no certificate could be made; see $work/tls.log"
}

proxy_knows_both() {
    echo '    server api2 127.0.0.1:8082' >>"$machine/etc/haproxy/haproxy.cfg"
    in_machine systemctl restart haproxy
}

proxy_answers() { in_network curl -fsS --max-time 10 --cacert "$work/tls/authority.pem" -o /dev/null https://127.0.0.1/livez; }

load_begin() {
    rm -rf "$work/load"
    mkdir -p "$work/load"
    job_text load-NUMBER 'num_gpus: 1' polar >"$work/load/job.json"
    in_network env "TAO_SLURM_TOKEN=$token" setpriv --pdeathsig TERM python3 deploy/systemd/lib/load.py "$work/load" https://127.0.0.1 \
        "$work/tls/authority.pem" >"$work/load/log" 2>&1 </dev/null {lock}>&- &
    background+=($!)
    load=$!
}

load_ended() { cat "$work/load/ended" 2>/dev/null || echo 0; }
load_ended_more_than() { (($(load_ended) > $1)); }
# Whether the jobs of the clients come to their end, now.
load_flows() { await 120 load_ended_more_than "$(($(load_ended) + 2))"; }

load_finish() {
    local name id
    touch "$work/load/stop"
    wait "$load" || die "the clients failed: $(tail -n 3 "$work/load/log")"
    while IFS=$'\t' read -r name id; do jobs["$name"]=$id; done < <(jq --raw-output '.jobs | to_entries[] | [.key, .value] | @tsv' "$work/load/summary.json")
    load_jobs=()
    for name in "${!jobs[@]}"; do [[ $name != load-* ]] || load_jobs+=("$name"); done
    note "${#load_jobs[@]} jobs; answers: $(jq --compact-output .answers "$work/load/summary.json")"
}

load_found_nothing() {
    jq --raw-output '.findings[]' "$work/load/summary.json" >&2
    jq --exit-status '.findings == []' "$work/load/summary.json" >/dev/null
}

load_is_done() {
    local name
    for name in "${load_jobs[@]}"; do
        if ! job_is_done 1 "$name" || ! executed_once "$name"; then
            note "$name (${jobs[$name]}) was lost or doubled"
            return 1
        fi
    done
}
