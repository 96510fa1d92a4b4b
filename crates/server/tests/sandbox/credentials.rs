//! Registry credentials are written to one file on the cluster, and nowhere else.

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use serde_json::json;

use crate::{
    cluster::Sandbox,
    service::{Answer, Service},
};

const FILE: &str = "$HOME/.config/enroot/.credentials";
const PASSWORD: &str = "hunter2-nGc.t0ken";

/// Restores the login user's own file after the test.
pub(crate) struct Kept<'a>(&'a Sandbox);

impl<'a> Kept<'a> {
    pub(crate) fn new(sandbox: &'a Sandbox) -> Self {
        sandbox.login("mkdir -p ~/.config/enroot; cd ~/.config/enroot; rm -f .kept; if [ -e .credentials ]; then mv .credentials .kept; fi");
        Self(sandbox)
    }
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        self.0.login(
            "cd ~/.config/enroot; rm -f .credentials; if [ -e .kept ]; then mv .kept .credentials; fi",
        );
    }
}

fn put(service: &Service, password: &str) -> Answer {
    let body = json!({"machine": "nvcr.io", "login": "$oauthtoken", "password": password});
    service.put("/clusters/sandbox/enroot-credentials", &body.to_string())
}

/// Reads the arguments and the environment of every process of this machine, including the cluster's, until a stop. It
/// returns those that contain the password.
fn spy(stop: &AtomicBool) -> Vec<String> {
    let mut found = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        for process in fs::read_dir("/proc").unwrap().flatten() {
            let Ok(pid) = process.file_name().to_string_lossy().parse::<u32>() else { continue };
            for file in ["cmdline", "environ"] {
                let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
                let text = String::from_utf8_lossy(&bytes);
                if text.contains(PASSWORD) {
                    found.push(format!("{pid} {file}: {text}"));
                }
            }
        }
    }
    found
}

#[test]
fn a_password_is_in_its_file_and_nowhere_else() {
    let service = Service::start_with(&[("TAO_SLURM_LOG", "trace")]);
    let sandbox = &service.sandbox;
    let _kept = Kept::new(sandbox);
    sandbox.login(&format!(
        "printf 'machine a login b password c\\nmachine nvcr.io login $oauthtoken password old\\n# end' >{FILE}; chmod 644 {FILE}"
    ));

    let stop = AtomicBool::new(false);
    let (answers, seen) = thread::scope(|scope| {
        let spying = scope.spawn(|| spy(&stop));
        let answers: Vec<Answer> = (0..10).map(|_| put(&service, PASSWORD)).collect();
        stop.store(true, Ordering::Relaxed);
        (answers, spying.join().unwrap())
    });
    for answer in &answers {
        assert_eq!((answer.status, answer.text.as_str()), (204, ""));
    }
    assert!(seen.is_empty(), "the words or the environment of a process: {seen:#?}");

    let text = sandbox.login(&format!("cat {FILE}; stat -c ' %a' {FILE} ~/.config/enroot"));
    assert_eq!(
        text,
        format!(
            "machine a login b password c\nmachine nvcr.io login $oauthtoken password {PASSWORD}\n# end 600\n 700"
        )
    );
    let log = service.log_text();
    assert!(log.contains("TRACE"), "the log is not at trace level");
    assert!(log.contains("enroot credentials installed") && !log.contains(PASSWORD), "the service's log");
    let left = sandbox.login(&format!(
        "grep -rlF -e {PASSWORD} /tmp ~ /lustre/fsw/portfolios/edgeai/users/tao 2>/dev/null || true"
    ));
    assert_eq!(left, sandbox.login(&format!("echo {FILE}")), "the cluster's files");

    let found = service.post("/clusters/sandbox/preflight", "").json();
    let check =
        found["checks"].as_array().unwrap().iter().find(|one| one["id"] == "enroot_credentials").unwrap();
    assert_eq!(
        (&check["outcome"], &check["observed"]),
        (&json!("pass"), &json!("mode 0600; for a, nvcr.io"))
    );
    assert!(!found.to_string().contains(PASSWORD));
    sandbox.login(&format!("chmod 644 {FILE}"));
    let found = service.post("/clusters/sandbox/preflight", "").json();
    assert_eq!(found["outcome"], "fail");
}

/// Enroot looks for the host, and takes its first entry.
#[test]
fn enroot_gets_the_newest_login_of_a_registry_with_a_port() {
    let service = Service::start();
    let sandbox = &service.sandbox;
    let _kept = Kept::new(sandbox);
    sandbox.login(&format!("echo 'machine a login b password c' >{FILE}"));
    for (machine, login) in
        [("registry.example:5000", "old"), ("registry.example:5000", "new"), ("other", "l")]
    {
        let body = json!({"machine": machine, "login": login, "password": PASSWORD});
        let answer = service.put("/clusters/sandbox/enroot-credentials", &body.to_string());
        assert_eq!(answer.status, 204, "{}", answer.text);
    }
    let text = sandbox.login(&format!("cat {FILE}"));
    let expected = format!(
        "machine a login b password c\nmachine registry.example login new password {PASSWORD}\nmachine other login l password {PASSWORD}"
    );
    assert_eq!(text, expected);
}

#[test]
fn an_unreachable_cluster_is_a_503_without_the_password() {
    let service = Service::start_with(&[("SLURM_HOSTNAME", "127.254.254.254:1"), ("TAO_SLURM_LOG", "trace")]);
    let answer = put(&service, PASSWORD);
    assert_eq!(answer.status, 503, "{}", answer.text);
    assert!(answer.text.contains("127.254.254.254") && !answer.text.contains(PASSWORD), "{}", answer.text);
    assert!(!service.log_text().contains(PASSWORD));
}
