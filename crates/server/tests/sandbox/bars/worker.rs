//! A worker that is stopped until its leases have expired, and continued.

use std::{
    fs::{self, File},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Child, Stdio},
    time::Duration,
};

use crate::{
    bars::{Tally, all_ended_done, signal, size},
    cluster::{Sandbox, sql},
    service::{Service, until},
};

/// A worker process on the database of the service.
struct Worker {
    child: Child,
    log: PathBuf,
}

impl Worker {
    fn start(service: &Service, name: &str) -> Self {
        let log = service.log.with_file_name(format!("{name}.log"));
        let mut command = service.command(&["serve", "--role", "worker"]);
        let child = command.stdout(Stdio::null()).stderr(File::create(&log).unwrap()).spawn().unwrap();
        Self { child, log }
    }

    fn signal(&self, name: &str) {
        signal(name, &self.child.id().to_string());
    }

    /// How many steps it dropped, by its own clock or because the database rejected them.
    fn dropped(&self) -> usize {
        let log = fs::read_to_string(&self.log).unwrap();
        let said =
            ["a lease ran out before its work was done", "was lost; the result of the step is dropped"];
        said.iter().map(|text| log.matches(text).count()).sum()
    }
}

impl Drop for Worker {
    #[expect(clippy::print_stdout, reason = "shown with a test that fails")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}:\n{}", self.log.display(), fs::read_to_string(&self.log).unwrap_or_default());
        }
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Makes the search for claims on the login hosts take three seconds, and with it the collection of a job's exit record.
struct Slow(PathBuf);

impl Slow {
    fn new(sandbox: &Sandbox) -> Self {
        let program = sandbox.file("bin/find");
        let text = "#!/bin/bash\n\
                    case $(hostname),$* in login*,*' -name run '*) sleep 3 ;; esac\n\
                    exec /usr/bin/find \"$@\"\n";
        let new = program.with_extension("new");
        fs::write(&new, text).unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(&new, &program).unwrap();
        Self(program)
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        fs::remove_file(&self.0).unwrap();
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "shown with the test: the figures of docs/reliability.md")]
fn a_worker_resumed_after_its_lease_expired_changes_nothing() {
    let mut service = Service::prepare(&[]);
    let settings = service.log.with_file_name("worker.toml");
    fs::write(&settings, "[worker]\nlease = \"10s\"\n").unwrap();
    service.set("TAO_SLURM_CONFIG", settings.to_str().unwrap());
    service.role = "api";
    service.spawn();
    let _slow = Slow::new(&service.sandbox);
    let tally = Tally::new(&service);
    let sleeper = Worker::start(&service, "sleeper");
    let ask = |question: &str| sql(&service.database_url, question);
    let concluding = "select count(*) from jobs where phase = 'finishing' and lease_expires_at > now()";
    let busy = "select count(*) from pg_stat_activity
                where datname = current_database() and state = 'active' and pid <> pg_backend_pid()";
    let (mut sent, mut slept) = (0, 0);
    while slept < size(2, 4) {
        for _ in 0..8 {
            service.submit(&tally.job(sent, "true"));
            sent += 1;
        }
        // There is no other worker, so all leases are this one's.
        until("an exit record to be collected", Duration::from_mins(1), || ask(concluding) != "0");
        sleeper.signal("STOP");
        // Its earlier statements are finished.
        until("its last statements", Duration::from_secs(10), || ask(busy) == "0");
        if ask(concluding) == "0" {
            // The record was collected in between.
            sleeper.signal("CONT");
            continue;
        }
        let before = sleeper.dropped();
        let other = Worker::start(&service, "other");
        until("the other to do all the work", Duration::from_mins(2), || all_ended_done(&service, sent));
        let rows = "select md5(string_agg(j::text, ' ' order by j.id)) || md5(string_agg(a::text, ' ' order by a.job_id))
                         || md5(string_agg(r::text, ' ' order by r.job_id))
                    from jobs j join slurm_metadata a on a.job_id = j.id
                    join runs r on r.job_id = j.id and r.attempt = a.attempt";
        let truth = ask(rows);
        sleeper.signal("CONT");
        until("its late results", Duration::from_secs(30), || {
            assert_eq!(ask(rows), truth, "a late result changed something");
            sleeper.dropped() > before
        });
        assert_eq!(ask(rows), truth, "a late result changed something");
        drop(other);
        slept += 1;
    }
    let runs = tally.runs(&service, sent);
    assert!(runs.iter().all(|runs| *runs == 1), "{runs:?}");
    let back = "select count(*) from job_events a join job_events b on b.job_id = a.job_id and b.seq > a.seq
                where a.kind = 'transition' and b.kind = 'transition' and a.data->>'phase' = 'ended'";
    assert_eq!(ask(back), "0", "no event follows the end of a job");
    println!(
        "{sent} jobs, a worker that slept {slept} times past its lease: {} results dropped",
        sleeper.dropped()
    );
}
