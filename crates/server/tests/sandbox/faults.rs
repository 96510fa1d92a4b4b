//! The sandbox's own faults: each has its effect, and no effect after its end. These tests do not use the service.

use std::{
    io::{Read, Write},
    process::{Command, Stdio},
    time::Duration,
};

use crate::{cluster::Sandbox, service::until};

const NOW: Duration = Duration::from_secs(20);

/// Checks that `bad` holds while the fault is on, and not before or after.
fn acts(sandbox: &Sandbox, name: &'static str, bad: impl Fn() -> bool) {
    until(&format!("{name} not to act yet"), NOW, || !bad());
    let fault = sandbox.fault(name);
    until(&format!("{name} to act"), NOW, &bad);
    drop(fault);
    until(&format!("{name} to be gone"), NOW, || !bad());
}

/// Whether a command on the login host takes longer: more than a busy machine needs, and less than a slow daemon rests.
fn fails(sandbox: &Sandbox, seconds: u32, text: &str) -> bool {
    sandbox.try_login("login1", &format!("timeout {seconds} {text} >/dev/null 2>&1")).is_err()
}

#[test]
fn slurmctld_and_slurmdbd_can_be_stopped_killed_frozen_and_slowed() {
    let sandbox = Sandbox::find();
    for name in ["slurmctld-stopped", "slurmctld-killed", "slurmctld-frozen", "slurmctld-slow"] {
        acts(&sandbox, name, || fails(&sandbox, 2, "squeue -h"));
    }
    for name in ["slurmdbd-stopped", "slurmdbd-killed", "slurmdbd-frozen", "slurmdbd-slow"] {
        acts(&sandbox, name, || fails(&sandbox, 4, "sacct -n -X -S now-1minutes"));
    }
}

#[test]
fn a_stopped_or_frozen_login_host_does_not_affect_the_other() {
    let sandbox = Sandbox::find();
    for (name, host, other) in [
        ("login1-stopped", "login1", "login2"),
        ("login1-frozen", "login1", "login2"),
        ("login2-stopped", "login2", "login1"),
        ("login2-frozen", "login2", "login1"),
    ] {
        acts(&sandbox, name, || sandbox.try_login(host, "true").is_err());
        let _fault = sandbox.fault(name);
        assert_eq!(sandbox.try_login(other, "hostname").as_deref(), Ok(other));
    }
}

#[test]
fn cut_connections_do_not_end_their_remote_commands() {
    let sandbox = Sandbox::find();
    let marks = "/home/tao/cut-begun /home/tao/cut-go /home/tao/cut-ended";
    sandbox.login(&format!("rm -f {marks}"));
    let mut session = sandbox.ssh("login1");
    let text = "touch ~/cut-begun; until [ -e ~/cut-go ]; do sleep 0.1; done; touch ~/cut-ended";
    let mut session = session.arg(text).stderr(Stdio::null()).spawn().unwrap();
    until("the session to begin", NOW, || sandbox.try_login("login2", "ls /home/tao/cut-begun").is_ok());
    drop(sandbox.fault("login1-cut"));
    assert!(!session.wait().unwrap().success());
    sandbox.login("touch /home/tao/cut-go");
    until("the command to end", NOW, || sandbox.try_login("login2", "ls /home/tao/cut-ended").is_ok());
    sandbox.login(&format!("rm -f {marks}"));
}

#[test]
fn ssh_sessions_can_be_limited_and_logins_can_print_noise() {
    let sandbox = Sandbox::find();
    let dir = tempfile::tempdir().unwrap();
    let control = format!("ControlPath={}/control", dir.path().display());
    let shared = |more: &[&str]| {
        let mut ssh = sandbox.ssh("login1");
        ssh.args(["-o", &control]).args(more);
        ssh
    };
    let second_session_is_refused = || {
        assert!(shared(&["-M", "-N", "-f"]).stderr(Stdio::null()).status().unwrap().success());
        let mut first = shared(&["cat"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut typed = first.stdin.take().unwrap();
        writeln!(typed, "is it open?").unwrap();
        first.stdout.as_mut().unwrap().read_exact(&mut [0; 11]).unwrap();
        // If the shared connection rejects it, ssh would open another one; this option prevents that.
        let second = shared(&["-o", "ProxyCommand=false", "true"]).stderr(Stdio::null()).status().unwrap();
        drop(typed);
        first.wait().unwrap();
        assert!(shared(&["-O", "exit"]).stderr(Stdio::null()).status().unwrap().success());
        !second.success()
    };
    acts(&sandbox, "sshd-few-sessions", second_session_is_refused);
    acts(&sandbox, "login-noise", || {
        let output = sandbox.ssh("login2").arg("echo quiet").output().unwrap();
        let both = [output.stdout, output.stderr].concat();
        String::from_utf8(both).unwrap() != "quiet\n"
    });
}

#[test]
fn sbatch_can_be_slow_killed_rejecting_or_rate_limited() {
    let sandbox = Sandbox::find();
    let submit = "sbatch --parsable -p cpu -J fault-test -o /dev/null --wrap true";
    for name in ["sbatch-refuses", "sbatch-rate-limited"] {
        let fault = sandbox.fault(name);
        let error = sandbox.try_login("login1", submit).unwrap_err();
        assert!(error.contains("Batch job submission failed"), "{name}: {error}");
        drop(fault);
    }
    let slow = sandbox.fault("sbatch-slow");
    assert!(fails(&sandbox, 4, submit));
    drop(slow);
    let before = sandbox.login("squeue --me -h -t all -n fault-test -o %A");
    let killed = sandbox.fault("sbatch-killed");
    assert!(sandbox.try_login("login2", submit).is_err());
    assert_ne!(sandbox.login("squeue --me -h -t all -n fault-test -o %A"), before, "and Slurm has it");
    drop(killed);
    let id: u32 = sandbox.login(submit).parse().unwrap();
    assert!(id > 0);
}

#[test]
fn the_disk_can_be_filled_and_files_can_appear_late() {
    let sandbox = Sandbox::find();
    let base = sandbox.var("SLURM_BASE_RESULTS_DIR");
    let write = format!("echo x > {base}/fault-test && rm {base}/fault-test");
    acts(&sandbox, "job-dir-full", || sandbox.try_login("login1", &write).is_err());

    let late = sandbox.fault("files-late");
    let look = |name: &str| sandbox.try_login("login1", &format!("test -e {base}/{name}")).is_ok();
    assert!(!look("fault-late"));
    std::fs::write(format!("{}/{}/fault-late", sandbox.var("SANDBOX_DIR"), &base[1..]), "x").unwrap();
    assert!(!look("fault-late"), "it was looked for just now");
    until("the file to be seen", NOW, || look("fault-late"));
    sandbox.login(&format!("rm {base}/fault-late"));
    assert!(!look("fault-late"), "what happens on the same host is seen at once");
    drop(late);
    sandbox.login(&format!("echo x > {base}/fault-late && rm {base}/fault-late"));
    assert_eq!(sandbox.login("findmnt -n -t fuse,fuse.bindfs /lustre || true"), "");
}

#[test]
fn a_node_without_power() {
    let sandbox = Sandbox::find();
    acts(&sandbox, "cpu02-dead", || {
        let state = sandbox.login("sinfo -h -n cpu02 -o %t");
        state != "idle" || fails(&sandbox, 4, "bash -c '</dev/tcp/cpu02/6818'")
    });
}

#[test]
fn a_database_outage_can_be_started_and_ended() {
    let sandbox = Sandbox::find();
    let mut ask = Command::new("psql");
    ask.args(["-XAtc", "select 1", "-d", sandbox.var("DATABASE_URL")]).stderr(Stdio::null());
    for name in ["postgres-stopped", "postgres-killed"] {
        acts(&sandbox, name, || {
            !Command::new("psql").args(ask.get_args()).output().unwrap().status.success()
        });
    }
}
