//! A secret reaches its job, and is stored nowhere else.

mod places;
mod planted;

use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt, time::Duration};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{
    cluster::sql,
    credentials::Kept,
    ending::{command, training},
    secrets::{
        places::{CommandLines, Places},
        planted::{Secrets, hex},
    },
    service::{Service, until},
    states::slurm_id,
};

/// Prints a digest of the values that the job got, waits for a file, then continues.
const TELL_AND_WAIT: &str = "printf %s \"$HF_TOKEN$WANDB_API_KEY\" | sha256sum
    here=$TAO_API_RESULTS_DIR/$TAO_API_JOB_ID
    until [ -e $here/go ]; do sleep 0.2; done
    ";
/// Fails once like a GPU, so that the job is staged a second time.
const FAIL_ONCE: &str = "if [ ! -e $here/second ]; then
        touch $here/second
        echo 'NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.' >&2
        exit 1
    fi";

/// Enroot's password file, which is not deleted.
const PASSWORDS: &str = "/home/tao/.config/enroot/.credentials";

/// A job of each kind with the same secrets, in the order of submission.
fn jobs(secrets: &Secrets) -> Vec<Value> {
    let mut contained = command(TELL_AND_WAIT);
    contained["image"] = "/lustre/images/tao-toolkit.sqsh".into();
    let mut all = vec![
        training(3, &json!({"epoch_seconds": 0.1, "fail": "hang"})),
        contained,
        command(&format!("{TELL_AND_WAIT}{FAIL_ONCE}")),
        training(1, &json!({"epoch_seconds": 0.1})),
    ];
    for job in &mut all {
        secrets.give_to(job);
    }
    all
}

#[test]
fn a_secret_reaches_its_jobs_and_is_stored_nowhere_else() {
    let service = Service::start_with(&[("TAO_SLURM_LOG", "trace"), ("TAO_SLURM_RETRY_WAIT", "1s")]);
    let secrets = Secrets::new(&["secret_env_vars", "docker_env_vars", "cloud_metadata", "password"]);
    let _kept = Kept::new(&service.sandbox);
    // On a node, and on the login host.
    let command_lines = CommandLines::watch(&secrets, &["--cloud-metadata-file", ": tao@"]);
    let mut places = Places::of(&service, &secrets);
    places.install("password");
    let ids: Vec<String> = jobs(&secrets).iter().map(|job| places.submit(job)).collect();
    places.refusals(&jobs(&secrets)[0]);
    let (waiting, hung) = (&ids[..3], &ids[0]);

    for id in waiting {
        let status = service.wait(id, "running", |s| s["status"] == "Running" && s["nodes"][0].is_string());
        places.controller(&slurm_id(&status));
    }
    service.wait(hung, "an epoch", |s| s["progress"]["epoch"].is_u64());
    places.service(&ids);
    let holding = places.files();
    for path in &holding {
        // The files of the fourth job may be deleted already.
        let Ok(file) = fs::metadata(path) else { continue };
        let private =
            ["/users/tao/env/", "/users/tao/meta/", PASSWORDS].iter().any(|place| path.contains(place));
        if !private || file.permissions().mode() & 0o777 != 0o600 {
            places.leaks.push(format!("{path}, {file:?}"));
        }
    }
    let expected = waiting.iter().map(|id| format!("/env/{id}.sh"));
    for end in expected.chain([format!("/env/{hung}.json"), format!("/meta/{hung}.json"), PASSWORDS.into()]) {
        assert!(holding.iter().any(|path| path.ends_with(&end)), "{end} is not among {holding:?}");
    }

    let base = service.sandbox.var("SLURM_BASE_RESULTS_DIR");
    for id in waiting {
        service.sandbox.login(&format!("touch {base}/results/{id}/go"));
    }
    service.post(&format!("/jobs/{hung}/cancel"), "");
    let ends: Vec<Value> = ids.iter().map(|id| service.wait_ended(id)["status"].clone()).collect();
    assert_eq!(json!(ends), json!(["Canceled", "Done", "Done", "Done"]));
    assert_eq!(service.status(&ids[2])["retry_count"], 1);
    let given = secrets.value("secret_env_vars") + &secrets.value("docker_env_vars");
    let digest = hex(&Sha256::digest(given));
    for id in &ids[1..3] {
        let log = service.get(&format!("/jobs/{id}/logs?stream=out&tail=9")).text;
        assert!(log.contains(&digest), "the job saw other values: {log}");
    }

    places.service(&ids);
    for id in &ids {
        until("accounting to show the job", Duration::from_secs(30), || {
            let rows = service.sandbox.login(&format!("sacct -X -n -P -o State --name tao-job-{id}"));
            !rows.is_empty() && !rows.contains("RUNNING")
        });
        places.accounting(id);
    }
    let after = places
        .files()
        .into_iter()
        .filter(|path| !path.ends_with(PASSWORDS))
        .map(|path| format!("{path}, after the end"));
    places.leaks.extend(after);
    let (seen, unseen) = command_lines.end();
    places.leaks.extend(seen.into_iter().map(|line| format!("the command line {line}")));
    assert_eq!(unseen, BTreeSet::new(), "these command lines were not seen");
    assert_eq!(places.leaks, Vec::<String>::new());
    let stored = sql(&service.database_url, "select count(*) from jobs where secrets is not null");
    assert_eq!(stored, "0");
}

#[test]
fn the_container_gets_its_files_and_they_are_removed_at_the_end() {
    let service = Service::start();
    let mut job = training(2, &json!({"epoch_seconds": 0.1, "held_at_epoch": 1}));
    job["secret_env_vars"] = json!({"HF_TOKEN": "hunter2"});
    let id = service.submit(&job);
    service.wait(&id, "running", |s| s["status"] == "Running");
    let base = service.sandbox.var("SLURM_BASE_RESULTS_DIR").to_owned();
    let modes = service.sandbox.login(&format!("stat -c '%a' {base}/env/{id}.json {base}/meta/{id}.json"));
    assert_eq!(modes, "600\n600");
    let specs = service.sandbox.login(&format!("cat {base}/specs/{id}.json"));
    assert!(specs.contains(&format!("\"results_dir\":\"{base}/results/{id}\"")), "{specs}");
    service.let_go(&id);
    assert_eq!(service.wait_ended(&id)["status"], "Done");
    let left = service.sandbox.login(&format!("ls {base}/env {base}/meta | grep {id} || true"));
    assert_eq!(left, "");
}
