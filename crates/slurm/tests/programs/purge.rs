use slurm::{FailureClass, Purge, RemoteCommand};
use uuid::Uuid;

use crate::site::Site;

const OURS: Uuid = Uuid::from_u128(0x0f8f_ad5b_d9cb_469f_a165_7086_7728_950e);
const OTHER: Uuid = Uuid::from_u128(0x0f8f_ad5b_d9cb_469f_a165_7086_7728_950f);

/// Everything that a job leaves behind.
fn leave(site: &Site, id: Uuid) -> Vec<String> {
    let files = vec![
        format!("base/results/{id}/train/status.json"),
        format!("base/state/{id}/1/exit"),
        format!("base/specs/{id}.json"),
        format!("base/env/{id}.json"),
        format!("base/env/{id}.sh"),
        format!("base/meta/{id}.json"),
        format!("base/sbatch/job_{id}.sbatch"),
        format!("base/slurm-logs/tao-job-{id}-7/main.out"),
        format!("base/slurm-logs/tao-job-{id}-r2-9/main.out"),
    ];
    for file in &files {
        site.write(file, "x");
    }
    files
}

fn purge(site: &Site, base: &str, id: Uuid) -> bool {
    site.run(&Purge { jobs: vec![(site.path(base), id)] }).left.is_empty()
}

#[test]
fn everything_of_the_job_goes_and_nothing_of_others() {
    let site = Site::new();
    let (ours, others) = (leave(&site, OURS), leave(&site, OTHER));
    assert!(purge(&site, "base", OURS));
    assert!(ours.iter().all(|file| !site.exists(file)));
    assert!(others.iter().all(|file| site.exists(file)));
    assert!(purge(&site, "base", OURS), "once more is no error");
}

#[test]
fn what_a_link_points_to_stays() {
    let site = Site::new();
    site.write("elsewhere/precious", "x");
    site.link(site.file("elsewhere").to_str().unwrap(), &format!("base/results/{OURS}"));
    assert!(purge(&site, "base", OURS));
    assert!(site.exists("elsewhere/precious") && !site.exists(&format!("base/results/{OURS}")));
}

#[test]
fn a_base_directory_that_is_not_there_may_come_back() {
    let site = Site::new();
    assert!(!purge(&site, "gone", OURS));
}

#[test]
fn a_question_that_was_cut_removes_nothing() {
    let site = Site::new();
    let files = leave(&site, OURS);
    let command = Purge { jobs: vec![(site.path("base"), OURS)] };
    for length in 0..command.render().stdin.len() {
        let error = command.parse(&site.raw_cut(&command, length)).unwrap_err();
        assert_eq!(error.class(), FailureClass::NotDone, "{length}");
    }
    assert!(files.iter().all(|file| site.exists(file)));
}
